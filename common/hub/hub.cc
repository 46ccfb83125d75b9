#include "common/hub/hub.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/hub/fetch_file.h"
#include "common/hub/http_client.h"
#include "common/hub/model_choice.h"
#include "common/hub/repo_cache.h"
#include "common/hub/retries.h"
#include "common/hub/tree.h"
#include "common/hub/url.h"

namespace tandem::hub {
namespace {

// Also of what can't be found or read any more: a model that is in the cache serves all the same.
bool IsRefusal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsUnauthenticated(status) ||
         absl::IsPermissionDenied(status);
}

// A repository of a hub and its cache.
class Repository {
 public:
  Repository(const ModelName& name, const Settings& settings, const Cancelled& cancelled)
      : name_(name),
        settings_(settings),
        cancelled_(cancelled),
        cache_(settings.cache, name),
        client_(settings, cancelled) {}

  absl::StatusOr<std::string> FromCache() const {
    const std::string commit = cache_.Commit();
    const std::vector<RepoModel> models = GroupModels(cache_.SnapshotFiles(commit));
    const absl::StatusOr<RepoModel> model = ChooseModel(models, name_.choice);
    if (!model.ok()) return Annotate(model.status(), absl::StrCat("in ", cache_.folder()));
    return cache_.SnapshotPath(commit, model->path);
  }

  absl::StatusOr<std::string> FromHub(std::vector<RepoFile> listed) {
    TANDEM_ASSIGN_OR_RETURN(const RepoModel model,
                            ChooseModel(GroupModels(std::move(listed)), name_.choice));
    TANDEM_ASSIGN_OR_RETURN(const std::string commit, FetchCommit(model.files.front()));
    std::vector<RepoFile> missing;
    for (const RepoFile& file : model.files) {
      if (!cache_.HasSnapshotFile(commit, file)) missing.push_back(file);
    }
    TANDEM_RETURN_IF_ERROR(CheckRoom(cache_, missing));
    for (const RepoFile& file : missing) {
      TANDEM_RETURN_IF_ERROR(
          FetchFile(client_, settings_, cancelled_, cache_, file, ResolveUrl(commit, file)));
      TANDEM_RETURN_IF_ERROR(cache_.Link(commit, file));
    }
    if (commit != name_.revision) TANDEM_RETURN_IF_ERROR(cache_.SetCommit(commit));
    return cache_.SnapshotPath(commit, model.path);
  }

  absl::StatusOr<std::vector<RepoFile>> List() {
    // A pod that is started again need not wait for a hub that is down.
    const bool cached = FromCache().ok();
    return FetchTree(client_, settings_, cancelled_, name_, /*unavailable_at_once=*/cached);
  }

 private:
  std::string ResolveUrl(const std::string& revision, const RepoFile& file) const {
    return absl::StrCat(settings_.endpoint, "/", EscapePath(name_.Repository()), "/resolve/",
                        EscapeSegment(revision), "/", EscapePath(file.path));
  }

  // The commit that the name's revision is at; the revision if the server does not tell.
  absl::StatusOr<std::string> FetchCommit(const RepoFile& file) {
    Retries retries(settings_, cancelled_);
    absl::StatusOr<HttpResponse> head;
    for (;;) {
      head = client_.Send({.url = ResolveUrl(name_.revision, file), .head = true});
      if (head.ok() || absl::IsUnimplemented(head.status())) break;
      TANDEM_RETURN_IF_ERROR(retries.Wait(head.status(), client_.retry_after_s()));
    }
    if (!head.ok() || head->repo_commit.empty()) return name_.revision;
    if (IsCommit(head->repo_commit)) return head->repo_commit;
    return absl::InvalidArgumentError("the server names a commit that is none");
  }

  const ModelName& name_;
  const Settings& settings_;
  const Cancelled& cancelled_;
  const RepoCache cache_;
  HttpClient client_;
};

absl::StatusOr<std::string> Find(const ModelName& name, const Settings& settings,
                                 const Cancelled& cancelled) {
  Repository repository(name, settings, cancelled);
  if (settings.offline) {
    const absl::StatusOr<std::string> path = repository.FromCache();
    if (!path.ok()) return Annotate(path.status(), "HF_HUB_OFFLINE is set");
    return path;
  }
  // A commit never changes, so that the hub need not be asked. Without a choice it has to be: the
  // default depends on what else there is.
  if (name.pinned() && !name.choice.empty()) {
    if (absl::StatusOr<std::string> path = repository.FromCache(); path.ok()) return path;
  }
  absl::StatusOr<std::vector<RepoFile>> listed = repository.List();
  if (listed.ok()) return repository.FromHub(*std::move(listed));
  const bool refused = IsRefusal(listed.status());
  if (!refused && !IsTransient(listed.status())) return listed.status();
  const absl::StatusOr<std::string> path = repository.FromCache();
  if (!path.ok() && refused) return listed.status();
  if (!path.ok()) {
    return absl::Status(listed.status().code(),
                        absl::StrCat(listed.status().message(), "; ", path.status().message()));
  }
  TANDEM_LOG(kWarning) << listed.status().message() << "; using " << *path;
  return path;
}

}  // namespace

absl::StatusOr<std::string> FetchModel(const ModelName& name, const Settings& settings,
                                       const Cancelled& cancelled) {
  const absl::StatusOr<std::string> path = Find(name, settings, cancelled);
  if (!path.ok()) return Annotate(path.status(), name.Text());
  return path;
}

absl::StatusOr<std::string> ModelPath(const std::string& model, const Cancelled& cancelled,
                                      const std::function<void()>& on_progress) {
  if (!ModelName::Is(model)) return model;
  TANDEM_ASSIGN_OR_RETURN(const ModelName name, ModelName::Parse(model));
  TANDEM_ASSIGN_OR_RETURN(Settings settings, SettingsFromEnvironment());
  settings.on_progress = on_progress;
  return FetchModel(name, settings, cancelled);
}

}  // namespace tandem::hub
