# Runs programs and keeps what came of them in $results. Sourced by run-checks.sh.
#   verdicts       section, verdict, name and detail of every check, separated by tabs
#   NAME.log       output of check NAME
#   PROGRAM.list   the suites of a program, or why it could not list them
#   figures/NAME.json
#   results.json   all of it, as report.py makes it

section=

# begin_results COMMAND SECTION...
begin_results() {
  rm -rf "$results"/*.log "$results"/*.list "$results"/*.json "$results"/verdicts "$results"/figures "$results"/run
  mkdir -p "$results/figures"
  : >"$results/verdicts"
  { echo "command=$1"; echo "date=$(date -u +%FT%TZ)"; echo "kind=$kind"; echo "limit=$limit"; echo "sections=${*:2}"; } >"$results/run"
}

# Writes results.json from what is there: after every section, so that a run that is cut off has one too.
report() {
  python3 "$here/report.py" "$results" || echo "run-checks: no results.json" >&2
}

# A section that has checked nothing has not passed.
end_section() {
  awk -F '\t' -v section="$section" '$1 == section { found = 1 } END { exit !found }' "$results/verdicts" ||
    verdict FAIL "$section" "nothing was checked"
}

end_results() {
  echo "seconds=$SECONDS" >>"$results/run"
  report
  echo "== summary: $(count PASS) passed, $(count FAIL) failed, $(count NOT-RUN) not run, $SECONDS s; $results/results.json"
  awk -F '\t' '$2 != "PASS" { printf "%-7s %-44s %s\n", $2, $3, $4; bad = 1 } END { exit bad || NR == 0 }' "$results/verdicts"
  exit
}

count() { awk -F '\t' -v verdict="$1" '$2 == verdict' "$results/verdicts" | wc -l; }

left() { echo $((limit - SECONDS)); }

# verdict PASS|FAIL|NOT-RUN NAME DETAIL
verdict() {
  printf '%-7s %-44s %s\n' "$1" "$2" "$3"
  printf '%s\t%s\t%s\t%s\n' "$section" "$1" "$2" "${3//$'\t'/ }" >>"$results/verdicts"
}

# check NAME MOST-SECONDS COMMAND...: runs it, output in NAME.log, and on the screen if `shown` is not empty; if GoogleTest skips for lack of
# a GPU, it is not a pass.
check() {
  local name=$1 most=$2 log=$results/$1.log begin=$SECONDS status=0 passed skipped detail
  shift 2
  (($(left) < most)) && most=$(left)
  ((most > 3)) || { verdict NOT-RUN "$name" "no time left"; return; }
  if [[ -n ${shown:-} ]]; then
    (LD_LIBRARY_PATH=$LIBRARIES timeout -k 5 "$most" "$@") 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
  else
    (LD_LIBRARY_PATH=$LIBRARIES timeout -k 5 "$most" "$@") >"$log" 2>&1 || status=$?
  fi
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log")
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log")
  detail="$((SECONDS - begin)) s${passed:+, $passed passed}${skipped:+, $skipped skipped}"
  if ((status == 124 || status == 137)); then
    verdict FAIL "$name" "stopped after $most s"
  elif ((status != 0)) || grep -q '^\[  FAILED  \]' "$log"; then
    verdict FAIL "$name" "$detail; exit code $status: $(why "$log")"
  elif [[ $passed == 0 ]] || grep -qE '^no GPU|need as many GPUs' "$log"; then
    verdict FAIL "$name" "$detail; $(grep -A1 -m1 'Skipped$' "$log" | tail -1)"
  else
    verdict PASS "$name" "$detail"
  fi
}

# The most informative line of a log.
why() {
  { grep -m1 -E 'ERROR SUMMARY: [1-9]|error:|Error:|: Failure|terminate' "$1" || tail -1 "$1"; } | cut -c1-160
}

# at_most N: waits until fewer than N checks run in the background.
at_most() { while (($(jobs -rp | wc -l) >= $1)); do wait -n; done; }
