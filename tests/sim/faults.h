// Faults: harms workers at random moments, in any state that they are in, and more often shortly
// after a loss, so that recovery is harmed as well.
#ifndef TANDEM_TESTS_SIM_FAULTS_H_
#define TANDEM_TESTS_SIM_FAULTS_H_

#include "tests/sim/fleet.h"

namespace tandem::sim {

class Faults {
 public:
  Faults(const Worker::Host& host, Fleet& fleet) : host_(host), fleet_(fleet) {}

  void Start();
  // What was stopped continues or ends; nothing else happens any more.
  void End() { over_ = true; }
  void BeginRecovery();
  void EndRecovery() { recovering_ = false; }

  uint64_t num_faults() const { return num_faults_; }

 private:
  void Next();
  void Strike();
  void StrikeProcess(Worker& worker);
  void StrikeResult(Worker& worker);

  const Worker::Host host_;
  Fleet& fleet_;
  bool over_ = false;
  bool recovering_ = false;
  uint64_t num_faults_ = 0;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_FAULTS_H_
