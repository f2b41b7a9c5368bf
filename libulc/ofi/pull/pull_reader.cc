// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/pull/pull_reader.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace ulc::ofi {
namespace {

/// An address of another process, as the kernel wants it.
void* remote(std::uint64_t address) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// Lists `bytes` bytes from `offset` on of a buffer in pieces. Returns how many entries there are.
template <class Piece, class AddressOf>
unsigned cut(const Piece* pieces, unsigned count, std::uint64_t offset, std::uint64_t bytes,
             AddressOf address_of, iovec* out) noexcept {
    unsigned used = 0;
    for (unsigned i = 0; i < count && bytes > 0; ++i) {
        if (offset >= pieces[i].length) {
            offset -= pieces[i].length;
            continue;
        }
        const std::uint64_t length = std::min<std::uint64_t>(pieces[i].length - offset, bytes);
        out[used++] = {address_of(pieces[i], offset), static_cast<std::size_t>(length)};
        bytes -= length;
        offset = 0;
    }
    return used;
}

}  // namespace

bool PullDescriptor::is_valid(std::uint64_t length_max) const noexcept {
    if (count > kPullPiecesMax || has_data > 1 || length > length_max) return false;
    std::uint64_t left = length;
    for (std::size_t i = 0; i < count; ++i) {
        if (pieces[i].length > left) return false;
        left -= pieces[i].length;
    }
    return left == 0;
}

bool read_descriptor(const PeerProcess& process, std::uint64_t address, const PullSeal& seal,
                     PullDescriptor& out) noexcept {
    const iovec local{&out, sizeof out};
    const iovec there{remote(address), sizeof out};
    return process.read(&local, 1, &there, 1, sizeof out) && out.seal == seal;
}

bool read_bytes(const PeerProcess& process, std::uint64_t address, const PullDescriptor& descriptor,
                std::uint64_t offset, std::uint64_t bytes, const ulc_piece* pieces,
                unsigned count) noexcept {
    iovec local[ULC_PIECES_MAX + 1];
    iovec there[kPullPiecesMax + 1];
    unsigned locals = cut(
        pieces, count, offset, bytes,
        [](const ulc_piece& piece, std::uint64_t from) -> void* {
            return static_cast<unsigned char*>(piece.base) + from;
        },
        local);
    unsigned remotes = cut(
        descriptor.pieces, descriptor.count, offset, bytes,
        [](const PullDescriptor::Piece& piece, std::uint64_t from) -> void* {
            return remote(piece.address + from);
        },
        there);
    // The seal is read last: the sender had not taken its data back.
    PullSeal seal{};
    local[locals++] = {&seal, sizeof seal};
    there[remotes++] = {remote(address + offsetof(PullDescriptor, seal)), sizeof seal};
    return process.read(local, locals, there, remotes, bytes + sizeof seal) &&
           seal == descriptor.seal;
}

}  // namespace ulc::ofi
