// Compiled as part of each link (`linkstamp`), so that a new commit recompiles and relinks nothing.
// Bazel defines the macros: with --stamp as printed by tools/dev/workspace_status.sh; otherwise, or
// if it printed nothing, as "0".
extern const char* const kTandemCommit;
extern const char* const kTandemCommitStatus;

const char* const kTandemCommit = BUILD_SCM_REVISION;
const char* const kTandemCommitStatus = BUILD_SCM_STATUS;
