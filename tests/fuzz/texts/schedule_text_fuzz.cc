// SPDX-License-Identifier: BSD-3-Clause
// Any text as a global program (tests/sim/schedule/text.h): it is refused with its line, or its
// steps, printed and read again, are the same steps, and a small one is judged to its end.
#include <cstring>
#include <string>

#include "../input.h"
#include "base/check.h"
#include "tests/sim/schedule/text.h"

namespace {

using namespace ulc;
using namespace ulc::sim;

std::string printed(const ScheduleText& program) {
    std::string text = "op none\nranks " + std::to_string(program.ranks.size()) + "\n";
    const auto schedules = program.schedules();
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        if (program.ranks[rank].line == 0) continue;
        text += "rank " + std::to_string(rank);
        text += " scratch " + std::to_string(program.ranks[rank].scratch) + "\n";
        for (std::uint32_t step = 0; step < schedules[rank].step_count; ++step)
            text += describe_step(schedules[rank], step) + "\n";
    }
    return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    ScheduleText program;
    const std::string mistake = parse_schedule(in.text(), program);
    if (!mistake.empty()) {
        ULC_CHECK(mistake.starts_with("line "));
        return 0;
    }
    ScheduleText again;
    const std::string text = printed(program);
    ULC_CHECK(parse_schedule(text, again).empty());
    ULC_CHECK(printed(again) == text);
    std::size_t steps = 0;
    for (const auto& rank : program.ranks)
        steps += rank.steps.size();
    if (program.ranks.size() > 4 || steps > 12) return 0;
    const Verdict verdict = program.check();
    ULC_CHECK(verdict.rank < program.ranks.size() || verdict.ok);
    return 0;
}
