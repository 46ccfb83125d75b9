"""The mutations of mutate.py: errors of failover. `old` occurs once in `file`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    file: str  # in coordinator
    old: str
    new: str


MUTATIONS = [
    Mutation("a stale block is hit: the prefix cache survives the workers", "scheduler/scheduler.cc", "  kv_.Forget();\n", ""),
    Mutation("a cancel is lost while its request waits", "engine/engine_delivery.cc",
             "if (found == generations_.end()) return;\n  // Clients",
             "if (found == generations_.end() || found->second->state == SequenceState::kWaiting) return;\n  // Clients"),
    Mutation("cancels are not served during recovery", "engine/engine_loop.cc", "      HandleInbox();\n      PublishStats();\n      return state()",
             "      PublishStats();\n      return state()"),
    Mutation("results of the old epoch are accepted", "cluster/process_worker_client.cc", "    opened = results_;\n",
             "    opened = results_;\n"
             "    link_->OnStepResult([queue = results_](std::string frame) {\n"
             "      queue->Deliver(transport::Frame(frame.begin(), frame.end()), Deadline::After(Duration::zero())).IgnoreError();\n"
             "    });\n"),
    Mutation("a rank is taken twice", "cluster/worker_registry.cc", "if (links_[static_cast<size_t>(rank)] != nullptr) {", "if (rank < 0) {"),
    Mutation("a token is delivered twice after a rewind: the last one is forgotten", "scheduler/scheduler.cc",
             "  LeaveRunning(sequence);\n  sequence.state = SequenceState::kWaiting;",
             "  LeaveRunning(sequence);\n  if (sequence.tokens.size() > sequence.prompt_len) sequence.tokens.pop_back();\n"
             "  sequence.state = SequenceState::kWaiting;"),
    Mutation("log-probabilities of the prompt are delivered again after a rewind", "engine/generation.h", "return {std::max(begin, next_scored),", "return {begin,"),
    Mutation("usage.cached_tokens changes after a rewind", "scheduler/scheduler.cc",
             "if (!std::exchange(sequence.was_admitted, true)) sequence.num_cached", "sequence.num_cached"),
    Mutation("blocks leak when a request ends with a step in flight", "scheduler/scheduler.cc", "  kv_.Release(sequence.blocks);\n",
             "  if (sequence.num_in_flight == 0) kv_.Release(sequence.blocks);\n"),
    Mutation("a sequence's block table is taken as sent to the new workers", "scheduler/scheduler.cc",
             "sequence.num_computed = sequence.num_scheduled = sequence.num_blocks_sent = 0;",
             "sequence.num_computed = sequence.num_scheduled = 0;"),
    Mutation("the steps in flight are still counted after a rewind", "scheduler/scheduler.cc", "  num_in_flight_ = 0;\n", ""),
    Mutation("keys of the old epoch's rendezvous remain", "cluster/rendezvous_registry.cc", "    values_.clear();\n", ""),
    Mutation("new workers may hold fewer blocks", "supervisor/supervisor.cc", "  num_blocks_ = ready.num_blocks;\n", ""),
    Mutation("an idle worker that ends is not noticed", "engine/engine_loop.cc", "is_idle ? core_->Heartbeat() : core_->Step()",
             "is_idle ? absl::OkStatus() : core_->Step()"),
    Mutation("restarts are not counted", "supervisor/supervisor.cc", "  restarts_.push_back(now);\n", ""),
    Mutation("the end of a drain is not reported", "engine/engine_loop.cc", "  in_flight_.erase(found);\n  ReportDrained();", "  in_flight_.erase(found);"),
    Mutation("the blocks of a window are released a block too early", "kvcache/block_manager.cc",
             "const uint32_t first_live = config_.FirstLiveBlock(config_.groups[group], num_computed);\n    while",
             "const uint32_t first_live =\n        config_.FirstLiveBlock(config_.groups[group], num_computed + config_.block_size);\n    while"),
    Mutation("a request is blamed after one loss", "scheduler/scheduler.h", "return sequence.num_strikes >= config_.max_strikes;",
             "return config_.max_strikes < UINT32_MAX && sequence.num_strikes >= 1;"),
    Mutation("a reference names another sample", "engine/step_builder.cc", ".sample = generation.last_sample});",
             ".sample = generation.last_sample > 0 ? generation.last_sample - 1 : 0});"),
    Mutation("pending tokens survive a rewind", "scheduler/scheduler.cc", "  sequence.num_pending = sequence.again_end = 0;\n",
             "  sequence.again_end = 0;\n"),
    Mutation("penalties are made before the token is known", "scheduler/scheduler.cc",
             "if (sequence.needs_known_tokens || sequence", "if (sequence"),
    Mutation("min_tokens does not count a pending token", "engine/step_builder.cc", "Adjust(generation.tokens, num_pending)",
             "Adjust(generation.tokens, 0 * num_pending)"),
    Mutation("a recurrent state keeps what wrong drafts have left in it", "scheduler/scheduler_drafts.cc",
             "sequence.restores_state = true;", "sequence.restores_state = false;"),
    Mutation("a step without a guesser is taken for one with it", "scheduler/scheduler.cc",
             "kv_.Commit(sequence.blocks, sequence.Published(), sequence.num_computed);",
             "kv_.Commit(sequence.blocks, sequence.tokens, sequence.num_computed);"),
    Mutation("a step two back is referred to", "scheduler/scheduler.cc", " || sequence.last_drawn_by != num_submitted_", ""),
]
