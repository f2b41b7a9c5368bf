// SPDX-License-Identifier: BSD-3-Clause
// The words of `ulc doctor` on frames that an engine did not take or could not send.
#include <gtest/gtest.h>

#include <string>

#include "tools/ulc/doctor/doctor.h"

namespace ulc::tools {
namespace {

Finding look(const CounterValues& counters) {
    Findings found;
    check_frames(counters, found);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Finding{} : found[0];
}

TEST(DoctorFrames, an_engine_that_takes_each_frame_is_well) {
    EXPECT_EQ(look({}).level, Level::kOk);
    EXPECT_EQ(look({{"rx_frames", 1000}, {"drop_duplicate", 7}}).level, Level::kOk);
}

TEST(DoctorFrames, each_reason_is_told_with_its_counter_and_advice) {
    for (const std::string counter :
         {"tx_unsendable", "drop_vlan", "drop_too_long", "port_errors", "port_missed"}) {
        const Finding found = look({{"rx_frames", 1000}, {counter, 3}});
        EXPECT_EQ(found.level, Level::kWarn) << counter;
        EXPECT_NE(found.text.find("3 frames"), std::string::npos) << found.text;
        EXPECT_NE(found.text.find(counter), std::string::npos) << found.text;
        EXPECT_FALSE(found.fix.empty()) << counter;
    }
}

TEST(DoctorFrames, changes_of_an_interface_are_told) {
    for (const std::string counter : {"mtu_falls", "mac_changes"}) {
        const Finding found = look({{"rx_frames", 1000}, {counter, 1}});
        EXPECT_EQ(found.level, Level::kWarn) << counter;
        EXPECT_EQ(found.topic, "interface") << counter;
        EXPECT_FALSE(found.fix.empty()) << counter;
    }
}

TEST(DoctorFrames, some_frames_for_other_nodes_are_normal_and_many_are_not) {
    EXPECT_EQ(look({{"rx_frames", 1000}, {"drop_other_station", 50}}).level, Level::kOk);
    EXPECT_EQ(look({{"rx_frames", 1000}, {"drop_other_station", 500}}).level, Level::kWarn);
    EXPECT_EQ(look({{"drop_other_station", 5}}).level, Level::kWarn);
}

}  // namespace
}  // namespace ulc::tools
