// SPDX-License-Identifier: BSD-3-Clause
// The archive of an object's state: both directions, the schema, and octets that lie. Damaged input
// ends with a sentence and stays within bounds.
#include <gtest/gtest.h>

#include <limits>

#include "base/prng.h"
#include "base/state/archive.h"

namespace ulc::state {
namespace {

enum class Kind : std::uint8_t { kPlain, kFancy };
constexpr Kind last_value(Kind) noexcept { return Kind::kFancy; }

struct Point {
    std::int16_t x = 0;
    std::int16_t y = 0;
    friend bool operator==(const Point&, const Point&) = default;
};
void fields(Archive& archive, Point& point) { archive.values(point.x, point.y); }

struct Frame {
    int references = 1;
};
struct Pool {
    const void* context = nullptr;
    void hold(Frame* frame) const noexcept { ++frame->references; }
};

class Lamp {
public:
    void fields(Archive& archive) {
        ULC_STATE(archive, Lamp, 3, (level, kind, on, share, points, trace),
                  (table_, name, frame, favourite, pool_));
        archive.text(name, 8);
        archive.frame(frame, pool_);
        archive.place(favourite, points.data(), points.size(), "no such point");
        table_ = kind == Kind::kFancy ? "fancy" : "plain";
    }
    explicit Lamp(const Pool& pool) : pool_(pool) {}

    std::uint32_t level = 0;
    Kind kind{};
    bool on = false;
    float share = 0;
    std::array<Point, 2> points{};
    std::int64_t trace[2] = {};
    std::string name;
    Frame* frame = nullptr;
    Point* favourite = nullptr;

private:
    const char* table_ = "";
    const Pool& pool_;
};

class StateArchive : public testing::Test {
protected:
    StateArchive() : lamp(pool) {
        pool.context = &pool;
        lamp.level = 0x01020304;
        lamp.kind = Kind::kFancy;
        lamp.on = true;
        lamp.share = 0.25F;
        lamp.points[1] = {-1, 7};
        lamp.trace[1] = std::numeric_limits<std::int64_t>::min();
        lamp.name = "hall";
        lamp.frame = &frame;
        lamp.favourite = &lamp.points[1];
    }
    [[nodiscard]] static Image exported(const Lamp& of) {
        Exporter exporter;
        exporter.values(of);
        return exporter.finish();
    }
    /// Returns the violation; "" if there is none.
    std::string why(const Image& image) {
        Lamp copy(pool);
        Importer importer(image.octets, image.frames);
        importer.values(copy);
        if (!importer.finish()) return importer.why();
        return "";
    }
    /// Returns the first place of these octets.
    static std::size_t find(const Image& image, std::string_view text) {
        const std::string_view all(reinterpret_cast<const char*>(image.octets.data()),
                                   image.octets.size());
        return all.find(text);
    }

    Frame frame;
    Pool pool;
    Lamp lamp;
};

TEST_F(StateArchive, gives_back_what_it_took) {
    const Image image = exported(lamp);
    Lamp copy(pool);
    Importer importer(image.octets, image.frames);
    importer.values(copy);
    ASSERT_TRUE(importer.finish()) << importer.why();
    EXPECT_EQ(copy.level, lamp.level);
    EXPECT_EQ(copy.kind, Kind::kFancy);
    EXPECT_TRUE(copy.on);
    EXPECT_EQ(copy.share, 0.25F);
    EXPECT_EQ(copy.points, lamp.points);
    EXPECT_EQ(copy.trace[1], lamp.trace[1]);
    EXPECT_EQ(copy.name, "hall");
    EXPECT_EQ(copy.favourite, &copy.points[1]);
    EXPECT_EQ(copy.frame, &frame);
    EXPECT_EQ(frame.references, 2);
    EXPECT_EQ(exported(copy).octets, image.octets);
}

TEST_F(StateArchive, writes_numbers_in_little_endian) {
    const Image image = exported(lamp);
    EXPECT_NE(find(image, std::string_view("\4\3\2\1\1\1", 6)), std::string_view::npos);
}

TEST_F(StateArchive, refuses_another_version_or_list) {
    Image image = exported(lamp);
    const std::size_t at = find(image, "Lamp") + 4;
    image.octets[at] = std::byte{9};
    EXPECT_EQ(why(image), "Lamp has version 9, this library knows 3");
    image.octets[at] = std::byte{3};
    image.octets[at + 2] ^= std::byte{1};
    EXPECT_EQ(why(image), "the fields of Lamp were changed and its version was not");
    image.octets[at + 2] ^= std::byte{1};
    image.octets[at - 1] = std::byte{'b'};
    EXPECT_EQ(why(image), "this library has no struct Lamb");
}

TEST_F(StateArchive, bounds_every_value) {
    Image image = exported(lamp);
    const std::size_t fields = find(image, std::string_view("\4\3\2\1", 4));
    const auto with = [&](std::size_t at, int value) {
        Image changed = image;
        changed.octets[at] = static_cast<std::byte>(value);
        return why(changed);
    };
    EXPECT_EQ(with(fields + 4, 2), "an enumeration has an unknown value");
    EXPECT_EQ(with(fields + 5, 2), "a truth value is neither 0 nor 1");
    Lamp infinite(pool);
    infinite.share = 0x1p+127F;
    Image large = exported(infinite);
    const std::size_t share = find(large, std::string_view("\x7f", 1));
    large.octets[share - 1] = std::byte{0x80};
    EXPECT_EQ(why(large), "a number is not finite");
    const std::size_t name = find(image, "hall") - 4;
    EXPECT_EQ(with(name, 9), "a text is too long");
    EXPECT_EQ(with(name + 8, 2), "a frame is not in the list of frames");
    EXPECT_EQ(with(name + 12, 3), "no such point");
    EXPECT_EQ(frame.references, 2) << "the last of them took the frame, and its owner ends";
}

TEST_F(StateArchive, bounds_the_list_of_frames) {
    Image image = exported(lamp);
    image.frames[0].pool = nullptr;
    EXPECT_EQ(why(image), "a frame is of another pool");
    image.frames.clear();
    EXPECT_EQ(why(image), "the list of frames has another length");
}

TEST_F(StateArchive, uses_all_octets_and_no_more) {
    const Image image = exported(lamp);
    for (std::size_t n = 0; n < image.octets.size(); ++n) {
        Image shorter = image;
        shorter.octets.resize(n);
        EXPECT_NE(why(shorter), "") << n;
    }
    Image longer = image;
    longer.octets.push_back({});
    EXPECT_EQ(why(longer), "octets are left behind the last field");
}

TEST_F(StateArchive, survives_any_octets) {
    const Image image = exported(lamp);
    Prng prng(1);
    for (int run = 0; run < 20'000; ++run) {
        Image changed = image;
        for (std::uint64_t n = prng.below(4) + 1; n > 0; --n)
            changed.octets[prng.below(changed.octets.size())] = std::byte(prng.below(256));
        static_cast<void>(why(changed));
    }
}

TEST_F(StateArchive, compares_what_must_be_the_same) {
    Exporter exporter;
    exporter.same(std::uint32_t{7}, "the limit");
    const Image image = exporter.finish();
    Importer importer(image.octets, image.frames);
    importer.same(std::uint32_t{8}, "the limit");
    EXPECT_FALSE(importer.finish());
    EXPECT_EQ(importer.why(), "the limit is another");
}

TEST_F(StateArchive, bounds_counts_by_what_is_left) {
    Exporter exporter;
    exporter.values(std::uint32_t{1000});
    const Image image = exporter.finish();
    std::vector<std::uint8_t> list;
    Importer importer(image.octets, image.frames);
    importer.sequence(list, 5000, "too many");
    EXPECT_EQ(importer.why(), "too many");
    EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace ulc::state
