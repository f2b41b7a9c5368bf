// SPDX-License-Identifier: BSD-3-Clause
// The trace of an engine: written as the engine tells it of frames, read back, as a capture and a
// timeline; files that are damaged or no traces.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "main/clock.h"
#include "main/trace/trace.h"
#include "tools/ulc/trace/output.h"
#include "tools/ulc/trace/pcapng.h"
#include "tools/ulc/trace/timeline.h"
#include "tools/ulc/trace/trace_file.h"
#include "wire/build.h"

namespace ulc {
namespace {

using daemon::Trace;
using daemon::TraceOptions;
using tools::Timeline;
using tools::TraceFile;

const Mac kHere{{2, 0, 0, 0, 0, 1}};
const Mac kThere{{2, 0, 0, 0, 0, 2}};

/// A frame that owns its memory.
struct Frame {
    std::vector<std::byte> bytes;
    Segment segment;
    explicit Frame(std::size_t octets) : bytes(octets) { refer(); }
    void refer() {
        segment.frame = bytes.data();
        segment.length = static_cast<std::uint32_t>(bytes.size());
    }
};

std::unique_ptr<Frame> data_frame(Mac from, Mac to, std::uint32_t number, std::size_t payload = 8) {
    auto frame = std::make_unique<Frame>(1514);
    const std::size_t octets = wire::build_data(frame->bytes.data(),
                                                {.destination = to,
                                                 .source = from,
                                                 .type = wire::FrameType::kData,
                                                 .flags = wire::kFlagFirst | wire::kFlagLast,
                                                 .handle = 7,
                                                 .rank = 1,
                                                 .seq = Seq{number}},
                                                {}, static_cast<std::uint16_t>(payload));
    frame->bytes.resize(octets);
    frame->refer();
    return frame;
}

std::unique_ptr<Frame> request_frame(Mac from, Mac to, std::uint32_t next) {
    auto frame = std::make_unique<Frame>(1514);
    wire::AckEntry entry{};
    entry.stream = 1;
    entry.next = next;
    entry.credit = 256;
    const std::size_t octets = wire::build_req(
        frame->bytes.data(),
        {.destination = to, .source = from, .type = wire::FrameType::kReq, .handle = 7, .rank = 0},
        entry, {});
    frame->bytes.resize(octets);
    frame->refer();
    return frame;
}

class TraceTest : public testing::Test {
protected:
    void SetUp() override {
        path_ = testing::TempDir() + "ulc_trace." + std::to_string(getpid());
        options_ = {.file = path_,
                    .records = 1024,
                    .ether_type = wire::kEtherTypeDefault,
                    .nets = {"lab", "0"},
                    .tsc_hz = 0};
    }
    void TearDown() override {
        trace_.reset();
        std::remove(path_.c_str());
        std::remove((path_ + ".old").c_str());
    }
    void open() {
        ASSERT_EQ(Trace::open(options_, trace_, why_), Err::kOk) << why_;
        port_ = {};
        trace_->watch_port(port_);
    }
    // The calls of an engine. Its port destroys the frames that it takes, as a fast NIC may.
    void receive(std::unique_ptr<Frame> frame) {
        Segment* const burst[] = {&frame->segment};
        port_.tap->on_received(port_.tap->context, burst, 1);
    }
    void send(const std::vector<std::unique_ptr<Frame>>& frames, std::uint16_t takes = 64) {
        std::vector<Segment*> segments;
        segments.reserve(frames.size());
        for (const auto& frame : frames)
            segments.push_back(&frame->segment);
        const auto count = static_cast<std::uint16_t>(segments.size());
        port_.tap->on_offered(port_.tap->context, segments.data(), count);
        takes = std::min(takes, count);
        for (std::uint16_t n = 0; n < takes; ++n)
            std::memset(segments[n]->frame, 0xEE, segments[n]->length);
        PortTap::add(*port_.tap->taken, takes);
    }
    void send(std::unique_ptr<Frame> frame) {
        std::vector<std::unique_ptr<Frame>> frames;
        frames.push_back(std::move(frame));
        send(frames);
    }
    std::vector<tools::TimedRecord> read(TraceFile& file) {
        std::string error;
        EXPECT_TRUE(file.open(path_, &error)) << error;
        std::vector<tools::TimedRecord> records;
        file.read(records);
        return records;
    }
    std::string contents() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    std::string path_;
    std::string why_;
    TraceOptions options_;
    std::unique_ptr<Trace> trace_;
    Port port_;
};

TEST_F(TraceTest, frames_are_recorded_with_time_direction_and_first_bytes) {
    open();
    receive(data_frame(kThere, kHere, 5));
    auto large = data_frame(kHere, kThere, 9, 1000);
    const std::vector<std::byte> sent(large->bytes.begin(),
                                      large->bytes.begin() + abi::kTraceFrameBytes);
    send(std::move(large));
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].kind, abi::TraceKind::kFrameIn);
    EXPECT_EQ(records[0].amount, 60U);
    EXPECT_EQ(records[0].kept, 60U);
    EXPECT_EQ(records[1].kind, abi::TraceKind::kFrameOut);
    EXPECT_EQ(records[1].kept, abi::kTraceFrameBytes);
    EXPECT_GT(records[1].amount, 1000U);
    EXPECT_EQ(std::memcmp(records[1].bytes, sent.data(), sent.size()), 0)
        << "as they were before the port had them";
    EXPECT_LE(records[0].at, records[1].at);
    EXPECT_EQ(file.nets(), (std::vector<std::string>{"lab", "0"}));
    EXPECT_EQ(file.engine_pid(), static_cast<std::uint32_t>(getpid()));
    EXPECT_TRUE(file.is_written());
    trace_.reset();
    EXPECT_FALSE(file.is_written());
}

TEST_F(TraceTest, frames_that_the_port_refuses_are_not_recorded) {
    open();
    std::vector<std::unique_ptr<Frame>> three;
    for (std::uint32_t n = 0; n < 3; ++n)
        three.push_back(data_frame(kHere, kThere, n));
    send(three, 1);
    receive(data_frame(kThere, kHere, 5));
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].kind, abi::TraceKind::kFrameOut);
    EXPECT_EQ(records[1].kind, abi::TraceKind::kFrameIn);
}

TEST_F(TraceTest, a_payload_that_lies_elsewhere_is_left_out) {
    open();
    auto frame = data_frame(kHere, kThere, 1, 1000);
    frame->segment.tail = frame->bytes.data();
    frame->segment.tail_octets = frame->segment.length - 50;
    send(std::move(frame));
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].kept, 50U);
}

TEST_F(TraceTest, the_first_bytes_of_each_length_are_kept) {
    open();
    std::vector<std::vector<std::byte>> sent;
    for (const std::size_t octets :
         {1, 14, 31, 32, 33, 50, 59, 60, 61, 63, 64, 65, 80, 111, 112, 113, 127, 128, 129, 1514}) {
        auto frame = std::make_unique<Frame>(octets);
        for (std::size_t n = 0; n < octets; ++n)
            frame->bytes[n] = static_cast<std::byte>(n + octets + 1);
        sent.push_back(frame->bytes);
        receive(std::move(frame));
    }
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), sent.size());
    for (std::size_t n = 0; n < sent.size(); ++n) {
        EXPECT_EQ(records[n].amount, sent[n].size());
        ASSERT_EQ(records[n].kept, std::min(sent[n].size(), abi::kTraceFrameBytes));
        const std::vector<std::byte> kept(records[n].bytes, records[n].bytes + records[n].kept);
        sent[n].resize(kept.size());
        EXPECT_EQ(kept, sent[n]) << "of " << records[n].amount;
    }
}

TEST_F(TraceTest, a_burst_has_one_time_which_is_that_of_the_day) {
    for (const std::uint64_t tsc_hz : {std::uint64_t{0}, daemon::measure_tsc_hz()}) {
        options_.tsc_hz = tsc_hz;
        open();
        const auto today = [] {
            timespec time{};
            clock_gettime(CLOCK_REALTIME, &time);
            return static_cast<Nanos>(time.tv_sec) * kSecond + time.tv_nsec;
        };
        const Nanos before = today();
        std::vector<std::unique_ptr<Frame>> two;
        for (std::uint32_t n = 0; n < 2; ++n)
            two.push_back(data_frame(kHere, kThere, n));
        send(two);
        const timespec length{.tv_sec = 0, .tv_nsec = 30 * kMillisecond};
        nanosleep(&length, nullptr);
        receive(data_frame(kThere, kHere, 5));
        const Nanos after = today();
        TraceFile file;
        const auto records = read(file);
        ASSERT_EQ(records.size(), 3U);
        EXPECT_EQ(records[0].at, records[1].at);
        EXPECT_GE(records[2].at - records[1].at, 29 * kMillisecond);
        EXPECT_LE(records[2].at - records[1].at, (after - before) * 21 / 20);
        EXPECT_GE(records[0].at + file.realtime_ahead(), before - kMillisecond);
        EXPECT_LE(records[2].at + file.realtime_ahead(), after + kMillisecond);
        trace_.reset();
    }
}

TEST_F(TraceTest, frames_that_the_port_gave_up_are_marked) {
    open();
    const auto frame = data_frame(kHere, kThere, 1);
    port_.tap->on_failed(port_.tap->context, frame->segment);
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].kind, abi::TraceKind::kGivenUp);
    EXPECT_EQ(records[0].kept, 60U);
}

TEST_F(TraceTest, each_net_has_a_tap) {
    open();
    Port second;
    trace_->watch_port(second);
    const auto frame = data_frame(kHere, kThere, 1);
    Segment* const burst[] = {&frame->segment};
    second.tap->on_received(second.tap->context, burst, 1);
    receive(data_frame(kThere, kHere, 5));
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].source, 1);
    EXPECT_EQ(records[1].source, 0);
}

TEST_F(TraceTest, counters_that_rise_are_events) {
    open();
    Counters counters;
    counters.add(Counter::messages_received, 100);
    trace_->watch(counters);
    counters.add(Counter::messages_received, 3);
    counters.add(Counter::client_stalled);
    counters.add(Counter::rounds, 1000);  // no event
    port_.tap->on_link_look(port_.tap->context);
    port_.tap->on_link_look(port_.tap->context);
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(file.counters()[records[0].source], "messages_received");
    EXPECT_EQ(records[0].amount, 3U) << "since watch()";
    EXPECT_EQ(file.counters()[records[1].source], "client_stalled");
}

TEST_F(TraceTest, counters_are_looked_at_before_frames_once_in_40_us) {
    open();
    Counters counters;
    trace_->watch(counters);
    const auto events = [&] {
        TraceFile file;
        const auto records = read(file);
        return std::ranges::count(records, abi::TraceKind::kCounter, &abi::TraceRecord::kind);
    };
    const timespec length{.tv_sec = 0, .tv_nsec = 60 * kMicrosecond};
    nanosleep(&length, nullptr);
    counters.add(Counter::messages_sent);
    receive(data_frame(kThere, kHere, 5));
    EXPECT_EQ(events(), 1);
    nanosleep(&length, nullptr);
    counters.add(Counter::messages_sent);
    send(data_frame(kHere, kThere, 5));
    EXPECT_EQ(events(), 2);
    int looks = 0;
    const Nanos start = monotonic_now();
    for (; monotonic_now() - start < kMillisecond; ++looks) {
        counters.add(Counter::messages_sent);
        receive(data_frame(kThere, kHere, 5));
    }
    EXPECT_LE(events(), 2 + 25 + 1) << looks << " bursts in a millisecond";
}

TEST_F(TraceTest, a_file_that_its_owner_shortens_ends_no_reader) {
    open();
    for (std::uint32_t n = 0; n < 10; ++n)
        send(data_frame(kHere, kThere, n));
    const std::string copy = path_ + ".copy";
    std::ofstream(copy, std::ios::binary) << contents();
    TraceFile file;
    std::string error;
    ASSERT_TRUE(file.open(copy, &error)) << error;
    ASSERT_EQ(::truncate(copy.c_str(), abi::kTraceHeaderBytes), 0);
    std::vector<tools::TimedRecord> records;
    file.read(records);
    EXPECT_TRUE(records.empty());
    EXPECT_EQ(file.bad(), 10U);
    ASSERT_EQ(::truncate(copy.c_str(), 0), 0);
    file.read(records);
    EXPECT_TRUE(records.empty());
    TraceFile empty;
    EXPECT_FALSE(empty.open(copy, &error));
    std::remove(copy.c_str());
}

TEST_F(TraceTest, a_full_ring_keeps_the_newest) {
    open();
    for (std::uint32_t n = 0; n < 5000; ++n)
        send(data_frame(kHere, kThere, n));
    TraceFile file;
    const auto records = read(file);
    ASSERT_EQ(records.size(), 1024U - abi::kTraceMargin);
    EXPECT_EQ(file.skipped(), 5000 - records.size());
    EXPECT_EQ(file.bad(), 0U);
    wire::FrameView last;
    ASSERT_EQ(wire::parse(records.back().bytes, 60, wire::kEtherTypeDefault, last),
              Counter::kCount);
    EXPECT_EQ(last.seq.value, 4999U);
    send(data_frame(kHere, kThere, 5000));
    std::vector<tools::TimedRecord> more;
    file.read(more);
    EXPECT_EQ(more.size(), 1U) << "the next call goes on where the last one ended";
}

TEST_F(TraceTest, the_trace_of_an_engine_that_ended_is_put_aside) {
    open();
    send(data_frame(kHere, kThere, 1));
    std::unique_ptr<Trace> second;
    EXPECT_EQ(Trace::open(options_, second, why_), Err::kInvalid);
    EXPECT_NE(why_.find("another engine writes"), std::string::npos) << why_;
    trace_.reset();
    open();
    struct stat status {};
    EXPECT_EQ(stat((path_ + ".old").c_str(), &status), 0);
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << "payloads are in it";
    TraceFile file;
    EXPECT_TRUE(read(file).empty());
}

TEST_F(TraceTest, a_file_that_is_no_trace_is_left_alone) {
    std::ofstream(path_) << "important";
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kInvalid);
    EXPECT_NE(why_.find("is not a trace"), std::string::npos) << why_;
    EXPECT_EQ(contents(), "important");
    std::remove(path_.c_str());
    ASSERT_EQ(symlink("/etc/passwd", path_.c_str()), 0);
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kInvalid);
    std::remove(path_.c_str());
    options_.file = "/no/such/folder/trace";
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kSystem);
    EXPECT_NE(why_.find("choose a folder"), std::string::npos) << why_;
}

TEST_F(TraceTest, what_lies_at_the_old_place_and_is_no_trace_of_this_user_is_left_alone) {
    const std::string old = path_ + ".old";
    open();
    trace_.reset();
    std::ofstream(old) << "important";
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kInvalid);
    EXPECT_NE(why_.find(old + " exists and is not a trace of this user"), std::string::npos)
        << why_;
    std::string text;
    std::getline(std::ifstream(old), text);
    EXPECT_EQ(text, "important");
    std::remove(old.c_str());
    ASSERT_EQ(symlink(path_.c_str(), old.c_str()), 0) << "a link to a trace is no trace";
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kInvalid);
    struct stat status {};
    ASSERT_EQ(lstat(old.c_str(), &status), 0);
    EXPECT_TRUE(S_ISLNK(status.st_mode));
    std::remove(old.c_str());
    ASSERT_EQ(mkdir(old.c_str(), 0700), 0);
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kInvalid);
    std::remove(old.c_str());
    for (int again = 0; again < 2; ++again) {  // the second time it replaces an old trace
        open();
        trace_.reset();
    }
}

TEST_F(TraceTest, a_trace_of_another_user_stays_where_it_is) {
    if (geteuid() != 0) GTEST_SKIP() << "only root makes files of others";
    open();
    trace_.reset();
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_EQ(Trace::open(options_, trace_, why_), Err::kInvalid);
    EXPECT_NE(why_.find("not a trace of this user"), std::string::npos) << why_;
    EXPECT_NE(access((path_ + ".old").c_str(), F_OK), 0);
}

TEST_F(TraceTest, what_is_made_of_a_trace_is_for_its_owner_alone) {
    struct stat status {};
    std::string error;
    {
        tools::Output out;
        ASSERT_TRUE(out.open(path_, &error)) << error;
        EXPECT_TRUE(out.write("payload", &error)) << error;
    }
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_EQ(contents(), "payload");
    ASSERT_EQ(chmod(path_.c_str(), 0644), 0);  // a file that is there is taken from others
    {
        tools::Output out;
        ASSERT_TRUE(out.open(path_, &error)) << error;
        EXPECT_TRUE(out.write("new", &error)) << error;
    }
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_EQ(contents(), "new");
    tools::Output out;
    EXPECT_TRUE(out.open("/dev/null", &error)) << error;
    ASSERT_EQ(stat("/dev/null", &status), 0);
    EXPECT_NE(status.st_mode & 0777U, 0600U) << "devices keep their rights";
}

// Where all may write, others may have been there first.
TEST_F(TraceTest, a_link_or_a_file_of_another_user_is_not_written) {
    const std::string link = path_ + ".link";
    { std::ofstream(path_) << "mine"; }
    std::remove(link.c_str());
    ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
    std::string error;
    {
        tools::Output out;
        EXPECT_FALSE(out.open(link, &error));
        EXPECT_NE(error.find("symbolic link; choose another file"), std::string::npos) << error;
    }
    std::remove(link.c_str());
    EXPECT_EQ(contents(), "mine");
    const int descriptor = ::open(path_.c_str(), O_WRONLY);
    ASSERT_GE(descriptor, 0);
    {
        tools::Output out;
        EXPECT_TRUE(out.open("/dev/fd/" + std::to_string(descriptor), &error)) << error;
        EXPECT_TRUE(out.write("own", &error)) << error;
    }
    close(descriptor);
    EXPECT_EQ(contents(), "own");
    if (geteuid() != 0) GTEST_SKIP() << "only root makes files of others";
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    tools::Output out;
    EXPECT_FALSE(out.open(path_, &error));
    EXPECT_NE(error.find("of another user; choose another file"), std::string::npos) << error;
    EXPECT_EQ(contents(), "own");
}

TEST_F(TraceTest, the_number_of_the_process_may_be_in_the_name) {
    options_.file = testing::TempDir() + "ulc_trace.%p";
    open();
    EXPECT_EQ(access(path_.c_str(), R_OK), 0);
}

TEST_F(TraceTest, the_timeline_shows_what_was_sent_again_and_what_was_repaired) {
    open();
    send(data_frame(kHere, kThere, 1));
    send(data_frame(kHere, kThere, 2));
    receive(request_frame(kThere, kHere, 1));
    send(data_frame(kHere, kThere, 1));
    receive(data_frame(kThere, kHere, 11));
    send(request_frame(kHere, kThere, 10));
    send(request_frame(kHere, kThere, 10));
    receive(data_frame(kThere, kHere, 10));
    send(request_frame(kHere, kThere, 12));
    TraceFile file;
    Timeline timeline(file);
    for (const auto& record : read(file))
        timeline.add(record);
    const auto& summary = timeline.summary();
    EXPECT_EQ(summary.frames_in, 3U);
    EXPECT_EQ(summary.frames_out, 6U);
    EXPECT_EQ(summary.sent_again, 1U);
    EXPECT_EQ(summary.requests_in, 1U);
    EXPECT_EQ(summary.requests_out, 3U);
    EXPECT_EQ(summary.repaired, 1U);
    EXPECT_EQ(summary.unreadable, 0U);
    const auto document = nlohmann::json::parse(timeline.finish());
    int again = 0;
    std::vector<std::string> ends;
    for (const auto& event : document["traceEvents"]) {
        again += event["name"] == "DATA again" ? 1 : 0;
        if (event["ph"] == "b") ends.push_back(event["args"]["end"]);
        if (event["ph"] == "b" && event["args"]["end"] == "filled") {
            EXPECT_EQ(event["args"]["requests"], 2);
            EXPECT_EQ(event["name"], "gap at 10");
        }
    }
    EXPECT_EQ(again, 1);
    EXPECT_EQ(ends.size(), 2U) << "one gap is still open at the end";
}

TEST_F(TraceTest, a_capture_has_an_interface_for_each_net_and_whole_blocks) {
    open();
    receive(data_frame(kThere, kHere, 5));
    TraceFile file;
    const auto records = read(file);
    std::string capture = tools::pcapng_head(file);
    for (const auto& record : records)
        capture += tools::pcapng_block(file, record);
    std::vector<std::uint32_t> types;
    for (std::size_t at = 0; at < capture.size();) {
        std::uint32_t head[2];
        ASSERT_LE(at + 12, capture.size());
        std::memcpy(head, capture.data() + at, sizeof head);
        ASSERT_LE(at + head[1], capture.size());
        ASSERT_EQ(head[1] % 4, 0U);
        std::uint32_t end = 0;
        std::memcpy(&end, capture.data() + at + head[1] - 4, sizeof end);
        ASSERT_EQ(end, head[1]);
        types.push_back(head[0]);
        at += head[1];
    }
    EXPECT_EQ(types, (std::vector<std::uint32_t>{0x0A0D0D0A, 1, 1, 6}));
}

/// Reads the file with all that the tools do. Returns false if it is refused, with a sentence.
bool read_all(const std::string& path) {
    TraceFile file;
    std::string error;
    if (!file.open(path, &error)) {
        EXPECT_NE(error.find("; "), std::string::npos) << "what to do: " << error;
        return false;
    }
    std::vector<tools::TimedRecord> records;
    file.read(records);
    Timeline timeline(file);
    std::string capture = tools::pcapng_head(file);
    for (const auto& record : records) {
        timeline.add(record);
        capture += tools::pcapng_block(file, record);
    }
    EXPECT_TRUE(nlohmann::json::accept(timeline.finish()));
    return true;
}

TEST_F(TraceTest, damaged_files_are_refused_or_read_as_far_as_they_are_whole) {
    open();
    for (std::uint32_t n = 0; n < 50; ++n) {
        send(data_frame(kHere, kThere, n));
        receive(request_frame(kThere, kHere, n));
    }
    trace_.reset();
    const std::string good = contents();
    ASSERT_TRUE(read_all(path_));
    Prng random(1);
    int read = 0;
    for (int n = 0; n < 400; ++n) {
        std::string bad = good;
        if (n % 4 == 0) bad.resize(random.next() % good.size());
        const bool head_only = n % 2 == 0;
        for (int flips = 0; flips < 8 && !bad.empty(); ++flips) {
            const std::size_t range = head_only ? 64 : 20'000;
            bad[random.next() % std::min(bad.size(), range)] = static_cast<char>(random.next());
        }
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << bad;
        read += read_all(path_) ? 1 : 0;
    }
    EXPECT_GT(read, 50) << "damage behind the head";
    EXPECT_LT(read, 350) << "damage of the head";
    for (const std::size_t octets : {0UL, 1UL, 4096UL, 200'000UL}) {
        std::string noise(octets, '\0');
        for (char& c : noise)
            c = static_cast<char>(random.next());
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << noise;
        EXPECT_FALSE(read_all(path_)) << octets;
    }
    EXPECT_FALSE(read_all("/no/such/file"));
    EXPECT_FALSE(read_all("/"));
}

}  // namespace
}  // namespace ulc
