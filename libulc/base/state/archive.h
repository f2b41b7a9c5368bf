// SPDX-License-Identifier: BSD-3-Clause
// The state of an object as octets: one list of fields serves export and import
// (docs/design/UPGRADE.md). Numbers are little-endian and have the width of the member.
//
//   struct Lamp {                                      void Lamp::fields(state::Archive& archive) {
//       void fields(state::Archive& archive);              ULC_STATE(archive, Lamp, 1,
//       std::uint32_t level_ = 0;                                   (level_, kind_), (table_));
//       Kind kind_{};                                      // table_: kind_ names it
//       const Table* table_ = nullptr;                     if (archive.importing())
//   };                                                         table_ = table_of(kind_);
//   constexpr Kind last_value(Kind) { … }              }
//
//   Exporter exporter;                 |   Importer importer(image.octets, image.frames);
//   exporter.values(lamp);             |   importer.values(lamp);
//   Image image = exporter.finish();   |   if (!importer.finish()) … importer.why()
//
// The compiler refuses ULC_STATE if its two lists together are not the members of the struct, each
// once. An owner of many objects offers
//   void export_state(state::Exporter&) const;   changes nothing; may throw std::bad_alloc
//   void import_state(state::Importer&);         of a new object; destroyed if the import fails
// Octets are untrusted: every value is bounded before it is used. The first violation is kept as a
// sentence; after it all values read are zero, and counts too, so loops end.
// Frames do not move: the octets name a frame by its place in a list. The exporting object holds
// its references until it is destroyed; the import takes one for each name.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/state/schema.h"

namespace ulc::state {

/// A frame that the octets name, and the pool that it belongs to.
struct FrameName {
    void* frame = nullptr;
    const void* pool = nullptr;
};

/// The result of an export.
struct Image {
    std::vector<std::byte> octets;
    std::vector<FrameName> frames;
};

/// Both directions of a list of fields.
class Archive {
public:
    Archive(const Archive&) = delete;
    Archive& operator=(const Archive&) = delete;

    [[nodiscard]] bool exporting() const noexcept { return exporting_; }
    [[nodiscard]] bool importing() const noexcept { return !exporting_; }
    [[nodiscard]] bool ok() const noexcept { return ok_; }
    /// Returns the first violation, or why the export was refused.
    [[nodiscard]] const std::string& why() const noexcept { return why_; }
    /// Ends the export or import. Only the first call has an effect.
    void fail(std::string sentence);
    /// Ends the archive unless `holds`, and returns that. An export that fails here shows a fault
    /// of ours, and is refused like an import.
    bool require(bool holds, const char* sentence) {
        if (!holds) [[unlikely]]
            fail(sentence);
        return holds;
    }

    /// Exports or imports each value: numbers, enumerations that have last_value(), arrays, and
    /// structs that have fields(Archive&) as a member, or a function fields(Archive&, T&).
    template <class... T>
    void values(T&... value) {
        (one(value), ...);
    }
    /// The importing object must have the same value, else the import ends with
    /// "`what` is another".
    template <class T>
    void same(const T& own, const char* what) {
        T value = own;
        one(value);
        if (importing() && ok_ && !(value == own)) [[unlikely]]
            fail(std::string(what) + " is another");
    }
    /// A number that is at most `most`.
    template <class T>
    void bounded(T& value, std::type_identity_t<T> most, const char* sentence) {
        one(value);
        if (!require(value <= most, sentence)) value = T{};
    }
    /// Returns how many elements follow: `size` in an export; at most `most`, and at most one an
    /// octet that is left, in an import.
    std::size_t count(std::size_t size, std::size_t most, const char* sentence);
    /// A vector of values, of at most `most`.
    template <class T>
    void sequence(std::vector<T>& value, std::size_t most, const char* sentence) {
        const std::size_t n = count(value.size(), most, sentence);
        if (importing()) value.resize(n);
        each_of(value);
    }
    /// A vector that has its length already.
    template <class T>
    void same_length(std::vector<T>& value) {
        const auto own = static_cast<std::uint32_t>(value.size());
        std::uint32_t n = own;
        number(n);
        if (require(n == own, "a list has another length")) each_of(value);
    }
    /// A string of at most `most` octets.
    void text(std::string& value, std::size_t most);
    /// Octets as they are; as many in both directions.
    void octets(std::span<std::byte> value);
    /// A pointer into an array, or nullptr.
    template <class T>
    void place(T*& pointer, std::type_identity_t<T>* first, std::size_t count,
               const char* sentence) {
        std::uint32_t at = 0;
        if (exporting() && pointer != nullptr) {
            at = static_cast<std::uint32_t>(pointer - first) + 1;
            ULC_CHECK(at <= count);
        }
        one(at);
        if (importing())
            pointer = require(at <= count, sentence) && at > 0 ? first + at - 1 : nullptr;
    }
    /// A frame, or nullptr. pool: that of the frame (port/segment.h), from which an import takes a
    /// reference. The content of the frame is not judged.
    template <class Frame, class Pool>
    void frame(Frame*& frame, const Pool& pool) {
        std::uint32_t at = exporting() ? name_frame(frame, pool.context) : 0;
        one(at);
        if (exporting()) return;
        frame = static_cast<Frame*>(find_frame(at, pool.context));
        if (frame != nullptr) pool.hold(frame);
    }

    /// ULC_STATE begins with it. False: the struct is not among those of the schema.
    bool begin(const Registration& row);

protected:
    explicit Archive(bool exporting) noexcept : exporting_(exporting) {}
    ~Archive() = default;

    std::vector<std::byte> out_;
    std::span<const std::byte> in_;
    std::vector<FrameName> named_;
    std::span<const FrameName> frames_;
    std::vector<const Registration*> rows_;  ///< first use first; in an export
    std::vector<bool> known_;                ///< by Registration::place

private:
    template <class T>
    void one(T& value) {
        static_assert(!std::is_const_v<T>, "a constant is given to the constructor: by hand");
        static_assert(!std::is_pointer_v<T>, "a pointer is a name: by hand (place, frame)");
        if constexpr (requires { value.fields(*this); }) {
            value.fields(*this);
        } else if constexpr (requires { fields(*this, value); }) {
            fields(*this, value);
        } else if constexpr (requires { std::tuple_size<T>::value; } || std::is_array_v<T>) {
            for (auto& each : value)
                one(each);
        } else if constexpr (std::is_enum_v<T>) {
            auto number = static_cast<std::underlying_type_t<T>>(value);
            one(number);
            const bool known = number >= 0 && static_cast<T>(number) <= last_value(T{});
            value = require(known, "an enumeration has an unknown value") ? static_cast<T>(number)
                                                                          : T{};
        } else if constexpr (std::is_same_v<T, bool>) {
            std::uint8_t number = value ? 1 : 0;
            bounded(number, 1, "a truth value is neither 0 nor 1");
            value = number != 0;
        } else if constexpr (std::is_same_v<T, float>) {
            real<std::uint32_t>(value);
        } else if constexpr (std::is_same_v<T, double>) {
            real<std::uint64_t>(value);
        } else {
            static_assert(std::is_integral_v<T>, "it has no fields(Archive&)");
            number(value);
        }
    }
    template <class T>
    void each_of(std::vector<T>& value) {
        if constexpr (std::is_same_v<T, bool>) {  // it has no references
            for (std::size_t i = 0; i < value.size(); ++i) {
                bool each = value[i];
                one(each);
                value[i] = each;
            }
        } else {
            for (T& each : value)
                one(each);
        }
    }
    template <class Bits, class T>
    void real(T& value) {
        auto bits = std::bit_cast<Bits>(value);
        number(bits);
        const T read = std::bit_cast<T>(bits);
        value = require(std::isfinite(read), "a number is not finite") ? read : T{};
    }
    template <class T>
    void number(T& value) {
        static_assert(std::endian::native == std::endian::little);
        if (exporting_) {
            const std::size_t at = out_.size();
            out_.resize(at + sizeof value);
            std::memcpy(out_.data() + at, &value, sizeof value);
            return;
        }
        value = T{};
        if (in_.size() < sizeof value) [[unlikely]] {
            fail("the octets end early");
            return;
        }
        if (!ok_) [[unlikely]]
            return;
        std::memcpy(&value, in_.data(), sizeof value);
        in_ = in_.subspan(sizeof value);
    }
    std::uint32_t name_frame(void* frame, const void* pool);
    void* find_frame(std::uint32_t at, const void* pool);

    const bool exporting_;
    bool ok_ = true;
    std::string why_;
};

class Exporter final : public Archive {
public:
    /// reserve: octets that are expected.
    explicit Exporter(std::size_t reserve = 0);
    /// Exports each value, which is not changed.
    template <class... T>
    void values(const T&... value) {
        // fields() serves both directions, so it takes what it may change.
        Archive::values(const_cast<T&>(value)...);
    }
    /// Returns the schema and what was exported. Call once, and only if ok().
    [[nodiscard]] Image finish();
};

class Importer final : public Archive {
public:
    /// Compares the schema with the structs of this library before anything is read. octets,
    /// frames: outlive this; the exporting object holds the frames.
    Importer(std::span<const std::byte> octets, std::span<const FrameName> frames);
    /// True: the import was complete and used all octets.
    [[nodiscard]] bool finish();

private:
    void read_schema();
};

}  // namespace ulc::state
