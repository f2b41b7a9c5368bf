// SPDX-License-Identifier: BSD-3-Clause
// Octets of an image:
//
//   "ULCSTATE"  rows 16  { length 8, name, version 16, digest 64 } …  frames 32  fields …
#include "base/state/archive.h"

#include <algorithm>
#include <utility>

namespace ulc::state {

namespace {

constexpr std::string_view kMagic = "ULCSTATE";
constexpr std::size_t kRowsMax = 1024;
constexpr std::size_t kNameMax = 64;

}  // namespace

void Archive::fail(std::string sentence) {
    if (!ok_) return;
    ok_ = false;
    why_ = std::move(sentence);
}

std::size_t Archive::count(std::size_t size, std::size_t most, const char* sentence) {
    auto n = static_cast<std::uint32_t>(size);
    number(n);
    if (!require(n <= most && (exporting() || n <= in_.size()), sentence)) return 0;
    return n;
}

void Archive::text(std::string& value, std::size_t most) {
    const std::size_t n = count(value.size(), most, "a text is too long");
    if (importing()) value.resize(n);
    octets(std::as_writable_bytes(std::span(value)));
}

void Archive::octets(std::span<std::byte> value) {
    if (exporting_) {
        out_.insert(out_.end(), value.begin(), value.end());
    } else if (ok_ && require(value.size() <= in_.size(), "the octets end early")) {
        std::copy_n(in_.begin(), value.size(), value.begin());
        in_ = in_.subspan(value.size());
    }
}

bool Archive::begin(const Registration& row) {
    if (known_[row.place]) return ok_;
    if (importing()) {
        fail(std::string(row.row.name) + " is not in the schema of the octets");
        return false;
    }
    known_[row.place] = true;
    rows_.push_back(&row);
    return ok_;
}

std::uint32_t Archive::name_frame(void* frame, const void* pool) {
    if (frame == nullptr) return 0;
    named_.push_back({frame, pool});
    return static_cast<std::uint32_t>(named_.size());
}

void* Archive::find_frame(std::uint32_t at, const void* pool) {
    if (at == 0 || !ok_) return nullptr;
    if (!require(at <= frames_.size(), "a frame is not in the list of frames")) return nullptr;
    const FrameName& name = frames_[at - 1];
    return require(name.pool == pool, "a frame is of another pool") ? name.frame : nullptr;
}

Exporter::Exporter(std::size_t reserve) : Archive(true) {
    out_.reserve(reserve);
    known_.resize(Registration::count());
}

Image Exporter::finish() {
    ULC_CHECK(ok() && rows_.size() <= kRowsMax);
    std::vector<std::byte> body = std::exchange(out_, {});
    out_.reserve(body.size() + (rows_.size() + 1) * (kNameMax + 11));
    const auto add_text = [this](std::string_view text) {
        const auto octets_of = std::as_bytes(std::span(text));
        out_.insert(out_.end(), octets_of.begin(), octets_of.end());
    };
    add_text(kMagic);
    values(static_cast<std::uint16_t>(rows_.size()));
    for (const Registration* each : rows_) {
        ULC_CHECK(each->row.name.size() <= kNameMax);
        values(static_cast<std::uint8_t>(each->row.name.size()));
        add_text(each->row.name);
        values(each->row.version, each->row.digest);
    }
    values(static_cast<std::uint32_t>(named_.size()));
    out_.insert(out_.end(), body.begin(), body.end());
    return {std::move(out_), std::move(named_)};
}

Importer::Importer(std::span<const std::byte> octets, std::span<const FrameName> frames)
    : Archive(false) {
    in_ = octets;
    frames_ = frames;
    known_.resize(Registration::count());
    read_schema();
}

void Importer::read_schema() {
    std::array<char, kMagic.size()> magic{};
    octets(std::as_writable_bytes(std::span(magic)));
    if (!require(std::string_view(magic.data(), magic.size()) == kMagic,
                 "the octets are no state of an engine"))
        return;
    std::uint16_t rows = 0;
    bounded(rows, kRowsMax, "the schema has too many structs");
    for (std::uint16_t i = 0; i < rows && ok(); ++i) {
        std::uint8_t length = 0;
        bounded(length, kNameMax, "a name in the schema is too long");
        std::string name(length, 0);
        octets(std::as_writable_bytes(std::span(name)));
        std::uint16_t version = 0;
        std::uint64_t digest = 0;
        values(version, digest);
        if (!ok()) return;
        const Registration* own = Registration::find(name);
        if (own == nullptr) {
            fail("this library has no struct " + name);
            return;
        }
        if (version != own->row.version) {
            fail(name + " has version " + std::to_string(version) + ", this library knows " +
                 std::to_string(own->row.version));
            return;
        }
        if (digest != own->row.digest) {
            fail("the fields of " + name + " were changed and its version was not");
            return;
        }
        if (!require(!known_[own->place], "a struct is twice in the schema")) return;
        known_[own->place] = true;
    }
    std::uint32_t named = 0;
    values(named);
    require(named == frames_.size(), "the list of frames has another length");
}

bool Importer::finish() {
    require(in_.empty(), "octets are left behind the last field");
    return ok();
}

}  // namespace ulc::state
