// SPDX-License-Identifier: BSD-3-Clause
// The work of `ulc-sim check-schedule`, without a command line, so that a test can run it.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/sim/schedule/bounds.h"
#include "tests/sim/schedule/check_schedule_command.h"
#include "tests/sim/schedule/goals.h"
#include "tests/sim/schedule/text.h"

namespace ulc::sim {
namespace {

std::string full_name(const coll::Algorithm& algorithm) {
    return fmt::format("{}/{}", coll::name_of(algorithm.op), algorithm.name);
}

/// Returns the text of a verdict about the first bad step. `line`: that of a text; 0: none.
std::string complaint(const Verdict& verdict, const std::vector<abi::Schedule>& schedules,
                      std::size_t line) {
    return fmt::format("rank {} step {}{}: {}: {}", verdict.rank, verdict.step,
                       line == 0 ? "" : fmt::format(" (line {})", line),
                       describe_step(schedules[verdict.rank], verdict.step), verdict.what);
}

std::string measures(const Verdict& verdict) {
    return fmt::format("correct; k = {} buffers ({} octets), {} messages, {} octets on the wire",
                       verdict.buffers, verdict.buffer_octets, verdict.wire_messages,
                       verdict.wire_octets);
}

int check_file(const CheckScheduleOptions& options, std::string& out, std::string& errors) {
    std::ifstream file(options.file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    if (!file.good() && text.empty()) {
        errors += fmt::format("{}: cannot be read, or is empty\n", options.file);
        return 2;
    }
    ScheduleText program;
    if (const std::string wrong = parse_schedule(text, program); !wrong.empty()) {
        errors += fmt::format("{}: {}\n", options.file, wrong);
        return 2;
    }
    const Verdict verdict = program.check(options.buffers);
    if (verdict.ok) {
        out += fmt::format("{}: {}\n", options.file, measures(verdict));
        return 0;
    }
    const ScheduleText::Rank& rank = program.ranks[verdict.rank];
    const std::size_t line =
        verdict.step < rank.lines.size() ? rank.lines[verdict.step] : rank.line;
    errors += fmt::format("{}: {}\n", options.file, complaint(verdict, program.schedules(), line));
    return 1;
}

coll::Call call_of(const CheckScheduleOptions& options, coll::Op op, std::uint16_t ranks) {
    return {.op = op,
            .ranks = ranks,
            .root = static_cast<std::uint16_t>(options.root % ranks),
            .octets = op == coll::Op::kBarrier ? 0 : options.octets,
            .segment = options.segment,
            .concurrent = options.concurrent};
}

void print(const coll::Algorithm& algorithm, const CheckScheduleOptions& options,
           std::string& out) {
    const coll::Call call = call_of(options, algorithm.op, options.ranks);
    const CollectiveCase one(algorithm, call);
    out += fmt::format("# {}\nop {}\nranks {}\noctets {}\nroot {}\n", full_name(algorithm),
                       coll::name_of(algorithm.op), call.ranks, call.octets, call.root);
    const std::vector<abi::Schedule> schedules = one.schedules();
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        const std::uint64_t scratch = schedules[rank].scratch_octets;
        out += fmt::format("rank {}{}\n", rank,
                           scratch == 0 ? "" : fmt::format(" scratch {}", scratch));
        for (std::uint32_t step = 0; step < schedules[rank].step_count; ++step)
            out += fmt::format("  {}\n", describe_step(schedules[rank], step));
    }
}

int check_algorithm(const coll::Algorithm& algorithm, const CheckScheduleOptions& options,
                    std::string& out, std::string& errors) {
    Verdict worst;
    const BufferBound* bound = buffer_bound(algorithm);
    for (std::uint16_t ranks = 1; ranks <= options.ranks; ++ranks) {
        const CollectiveCase one(algorithm, call_of(options, algorithm.op, ranks));
        const Verdict verdict = one.check(options.buffers);
        if (!verdict.ok) {
            errors += fmt::format("{} of {} ranks: {}\n", full_name(algorithm), ranks,
                                  complaint(verdict, one.schedules(), 0));
            return 1;
        }
        const coll::Call call = even(call_of(options, algorithm.op, ranks));
        if (bound == nullptr || verdict.buffers > bound->messages(call, options.octets)) {
            errors += fmt::format(
                "{} of {} ranks: needs {} buffers, more than tests/sim/schedule/bounds.cc claims: "
                "correct the schedule or the claim\n",
                full_name(algorithm), ranks, verdict.buffers);
            return 1;
        }
        if (verdict.buffers >= worst.buffers) worst = verdict;
    }
    out += fmt::format("{:<28} ranks 1-{}: {}; k <= {}\n", full_name(algorithm), options.ranks,
                       measures(worst), bound->formula);
    return 0;
}

}  // namespace

int check_schedule(const CheckScheduleOptions& options, std::string& out, std::string& errors) {
    if (!options.file.empty()) return check_file(options, out, errors);
    int status = 0;
    bool found = false;
    for (const coll::Algorithm& algorithm : coll::algorithms()) {
        // With equal lengths, as here, these are the same as the operation without a v.
        if (is_uneven(algorithm.op)) continue;
        if (!options.algorithm.empty() && options.algorithm != full_name(algorithm)) continue;
        found = true;
        if (options.print) {
            print(algorithm, options, out);
        } else {
            status = std::max(status, check_algorithm(algorithm, options, out, errors));
        }
    }
    if (found) return status;
    errors += fmt::format("no algorithm {}; there are:", options.algorithm);
    for (const coll::Algorithm& algorithm : coll::algorithms())
        if (!is_uneven(algorithm.op)) errors += ' ' + full_name(algorithm);
    errors += '\n';
    return 2;
}

}  // namespace ulc::sim
