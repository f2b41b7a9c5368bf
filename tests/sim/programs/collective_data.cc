// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/collective_data.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "coll/reduction.h"

namespace ulc::sim {
namespace {

/// Returns byte i of the data of `from` (for `to`, if each receiver gets different data).
unsigned char octet_of(std::uint64_t stamp, std::uint32_t from, std::uint32_t to, std::size_t i) {
    return static_cast<unsigned char>(stamp * 31 + from * 7 + to * 101 + i * 13 + i / 251);
}

constexpr std::size_t kLongDoubleOctets = 10;  ///< significant bytes of sizeof(long double)

template <typename T>
void put(unsigned char* out, T value) {
    constexpr bool kPadded = std::is_same_v<T, long double>;
    std::memcpy(out, &value, kPadded ? kLongDoubleOctets : sizeof value);
}

template <typename T>
void put_complex(unsigned char* out, unsigned n, std::uint32_t op) {
    put(out, static_cast<T>(1 + n % 2));
    put(out + sizeof(T), static_cast<T>(op == ULC_PROD ? 0 : n % 3));
}

template <typename T>
void put_pair(unsigned char* out, unsigned n) {
    put(out, static_cast<T>(n % 5));
    put(out + std::max(sizeof(T), sizeof(int)), static_cast<int>(n % 7));
}

/// Writes an element of a rank: any bytes for integers, otherwise values so small that every
/// bracketing gives the same result.
void put_element(const Operation& of, unsigned char* out, std::size_t octets, unsigned n) {
    switch (of.type) {
        case ULC_FLOAT:
            return put(out, static_cast<float>(1 + n % 2));
        case ULC_DOUBLE:
            return put(out, static_cast<double>(1 + n % 2));
        case ULC_LONG_DOUBLE:
            return put(out, static_cast<long double>(1 + n % 2));
        case ULC_FLOAT_COMPLEX:
            return put_complex<float>(out, n, of.op);
        case ULC_DOUBLE_COMPLEX:
            return put_complex<double>(out, n, of.op);
        case ULC_LONG_DOUBLE_COMPLEX:
            return put_complex<long double>(out, n, of.op);
        case ULC_FLOAT_INT:
            return put_pair<float>(out, n);
        case ULC_DOUBLE_INT:
            return put_pair<double>(out, n);
        case ULC_LONG_INT:
            return put_pair<long>(out, n);
        case ULC_SHORT_INT:
            return put_pair<short>(out, n);
        case ULC_2INT:
            return put_pair<int>(out, n);
        case ULC_LONG_DOUBLE_INT:
            return put_pair<long double>(out, n);
        default:
            for (std::size_t i = 0; i < octets; ++i)
                out[i] = static_cast<unsigned char>(n * 37 + i * 11 + n / 7);
    }
}

/// Returns true for padding bytes of an element, whose content after a reduction does not matter.
bool is_padding(std::uint32_t type, std::size_t at) {
    switch (type) {
        case ULC_LONG_DOUBLE:
        case ULC_LONG_DOUBLE_COMPLEX:
            return at % sizeof(long double) >= kLongDoubleOctets;
        case ULC_DOUBLE_INT:
        case ULC_LONG_INT:
            return at >= sizeof(double) + sizeof(int);
        case ULC_SHORT_INT:
            return at >= sizeof(short) && at < sizeof(int);
        case ULC_LONG_DOUBLE_INT:
            return (at >= kLongDoubleOctets && at < sizeof(long double)) ||
                   at >= sizeof(long double) + sizeof(int);
        default:
            return false;
    }
}

/// (a, b) represents x ↦ a·x + b; into ∘ from applies `into` first.
void compose(void*, void* into, const void* from, std::size_t count) {
    auto* f = static_cast<unsigned char*>(into);
    const auto* g = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < 2 * count; i += 2) {
        f[i + 1] = static_cast<unsigned char>(g[i] * f[i + 1] + g[i + 1]);
        f[i] = static_cast<unsigned char>(g[i] * f[i]);
    }
}

/// (a, b) represents a + b·i; a product of Gaussian integers modulo 256, the same in any order.
void multiply(void*, void* into, const void* from, std::size_t count) {
    auto* f = static_cast<unsigned char*>(into);
    const auto* g = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < 2 * count; i += 2) {
        const auto a = static_cast<unsigned char>(f[i] * g[i] - f[i + 1] * g[i + 1]);
        f[i + 1] = static_cast<unsigned char>(f[i] * g[i + 1] + f[i + 1] * g[i]);
        f[i] = a;
    }
}

unsigned char* memory_of(std::vector<unsigned char>& octets) {
    static unsigned char
        nothing;  // an address for an empty buffer that is not the NULL of in-place
    return octets.empty() ? &nothing : octets.data();
}

}  // namespace

coll::Op operation_of(CollectiveKind kind) {
    constexpr coll::Op kOperations[kCollectiveKinds] = {
        coll::Op::kBarrier,       coll::Op::kBroadcast, coll::Op::kAllgather, coll::Op::kGather,
        coll::Op::kScatter,       coll::Op::kAlltoall,  coll::Op::kReduce,    coll::Op::kAllreduce,
        coll::Op::kReduceScatter, coll::Op::kScan,      coll::Op::kExscan};
    return kOperations[static_cast<std::size_t>(kind)];
}

CollectiveKind kind_of(coll::Op op) {
    switch (op) {
        case coll::Op::kGatherv:
            return CollectiveKind::kGather;
        case coll::Op::kScatterv:
            return CollectiveKind::kScatter;
        case coll::Op::kAlltoallv:
            return CollectiveKind::kAlltoall;
        default:
            break;
    }
    std::uint8_t kind = 0;
    while (operation_of(static_cast<CollectiveKind>(kind)) != op)
        ++kind;
    return static_cast<CollectiveKind>(kind);
}

CollectiveData::CollectiveData(const Operation& operation, std::uint16_t rank, std::uint16_t ranks,
                               std::uint64_t stamp)
    : op_(operation), rank_(rank), ranks_(ranks), stamp_(stamp) {
    const bool exchange = op_.kind == CollectiveKind::kAlltoall;
    switch (op_.kind) {
        case CollectiveKind::kBarrier:
            break;
        case CollectiveKind::kBroadcast:
            for (std::size_t i = 0; i < op_.octets; ++i)
                expected_.push_back(octet_of(stamp_, op_.root, 0, i));
            output_.assign(op_.octets, 0);
            if (at_root()) output_.assign(expected_.begin(), expected_.end());
            break;
        case CollectiveKind::kScatter:
            lay_out(false);
            if (at_root()) give_blocks(input_, false);
            for (std::size_t i = 0; i < blocks_.lengths[rank_]; ++i)
                expected_.push_back(octet_of(stamp_, rank_, 0, i));
            output_.assign(blocks_.lengths[rank_], 0);
            break;
        case CollectiveKind::kGather:
        case CollectiveKind::kAllgather:
        case CollectiveKind::kAlltoall:
            lay_out(exchange);
            if (op_.kind != CollectiveKind::kGather || at_root()) expect_blocks(exchange);
            if (exchange) {
                give_blocks(op_.in_place ? output_ : input_, true);
                break;
            }
            for (std::size_t i = 0; i < blocks_.lengths[rank_]; ++i) {
                input_.push_back(octet_of(stamp_, rank_, 0, i));
                if (!output_.empty())
                    output_[blocks_.offsets[rank_] + i] = op_.in_place ? input_[i] : 0;
            }
            break;
        case CollectiveKind::kReduce:
        case CollectiveKind::kAllreduce:
        case CollectiveKind::kReduceScatter:
        case CollectiveKind::kScan:
        case CollectiveKind::kExscan:
            reduction();
            break;
    }
}

std::size_t CollectiveData::length_of(std::uint32_t who) const {
    const std::size_t length = op_.uneven ? op_.octets * (who * 5 % 4) / 2 : op_.octets;
    return reduces() ? length / unit() * unit() : length;
}

std::size_t CollectiveData::unit() const { return op_.user ? 2 : ulc_type_bytes(op_.type); }

CollectiveData::Octets CollectiveData::operand(std::uint16_t rank, std::size_t from,
                                               std::size_t octets) const {
    Octets out(octets, 0);
    if (op_.user) {
        for (std::size_t i = 0; i < octets; ++i)
            out[i] = octet_of(stamp_, rank, 0, from + i);
        return out;
    }
    const std::size_t element = unit();
    auto n = static_cast<unsigned>(stamp_ * 31 + rank * 7U + from / element * 13);
    for (std::size_t at = 0; at < octets; at += element, n += 13)
        put_element(op_, out.data() + at, element, n);
    return out;
}

/// Returns the data that `from` gives `to` in a total exchange: in place, not the data that it gets
/// back, but the position of one in the other's buffer.
std::size_t CollectiveData::exchanged_length(std::uint32_t from, std::uint32_t to) const {
    return length_of((from + (op_.in_place ? to : 2 * to)) % ranks_);
}

/// Lays out uneven blocks in descending order with gaps, so that offsets matter; those of a
/// reduction have none.
CollectiveData::Blocks CollectiveData::laid_out(std::vector<std::size_t> lengths) const {
    if (op_.mistake != 0) lengths[op_.mistaken_about] += static_cast<std::size_t>(op_.mistake);
    Blocks blocks{std::move(lengths), std::vector<std::size_t>(ranks_)};
    const bool descending = op_.uneven && op_.kind != CollectiveKind::kReduceScatter;
    std::size_t at = 0;
    for (std::uint16_t n = 0; n < ranks_; ++n) {
        const auto rank = static_cast<std::uint16_t>(descending ? ranks_ - 1 - n : n);
        blocks.offsets[rank] = at;
        at += blocks.lengths[rank] + (descending ? 2 : 0);
    }
    return blocks;
}

void CollectiveData::lay_out(bool exchange) {
    std::vector<std::size_t> got(ranks_);
    std::vector<std::size_t> given(ranks_);
    for (std::uint16_t rank = 0; rank < ranks_; ++rank) {
        got[rank] = exchange ? exchanged_length(rank, rank_) : length_of(rank);
        given[rank] = exchange ? exchanged_length(rank_, rank) : length_of(rank);
    }
    blocks_ = laid_out(std::move(got));
    given_ = laid_out(std::move(given));
}

void CollectiveData::give_blocks(Octets& memory, bool exchange) const {
    for (std::uint16_t to = 0; to < ranks_; ++to) {
        const std::size_t begin = given_.offsets[to];
        memory.resize(std::max(memory.size(), begin + given_.lengths[to]), 0);
        for (std::size_t i = 0; i < given_.lengths[to]; ++i)
            memory[begin + i] =
                exchange ? octet_of(stamp_, rank_, to, i) : octet_of(stamp_, to, 0, i);
    }
}

void CollectiveData::expect_blocks(bool exchange) {
    for (std::uint16_t from = 0; from < ranks_; ++from) {
        expected_.resize(std::max(expected_.size(), blocks_.offsets[from] + blocks_.lengths[from]),
                         -1);
        for (std::size_t i = 0; i < blocks_.lengths[from]; ++i)
            expected_[blocks_.offsets[from] + i] = octet_of(stamp_, from, exchange ? rank_ : 0, i);
    }
    output_.assign(expected_.size(), 0);
}

/// Returns the fold of that part of the vectors of ranks 0 … ranks-1.
CollectiveData::Octets CollectiveData::folded(std::uint16_t ranks, std::size_t from,
                                              std::size_t octets) const {
    Octets sum;
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const Octets one = operand(rank, from, octets);
        if (rank == 0) {
            sum = one;
        } else if (op_.user) {
            (op_.commutes ? multiply : compose)(nullptr, sum.data(), one.data(), one.size() / 2);
        } else {
            coll::apply_of(op_.type, op_.op)(nullptr, sum.data(), sum.data(), one.data(),
                                             one.size());
        }
    }
    return sum;
}

void CollectiveData::reduction() {
    std::size_t octets = length_of(0);
    if (op_.kind == CollectiveKind::kReduceScatter) {
        lay_out(false);
        octets = blocks_.offsets.back() + blocks_.lengths.back();
    } else {
        octets = op_.octets / unit() * unit();
    }
    input_ = operand(rank_, 0, octets);
    const bool before = op_.kind == CollectiveKind::kScan || op_.kind == CollectiveKind::kExscan;
    const int own = op_.kind == CollectiveKind::kExscan ? 0 : 1;
    output_ = op_.in_place ? input_ : Octets(octets, 0);
    std::size_t from = 0;
    if (op_.kind == CollectiveKind::kReduceScatter) {
        from = blocks_.offsets[rank_];
        octets = blocks_.lengths[rank_];
    } else if (op_.kind == CollectiveKind::kReduce && !at_root()) {
        return;
    }
    const Octets result =
        folded(static_cast<std::uint16_t>(before ? rank_ + own : ranks_), from, octets);
    expected_.assign(result.begin(), result.end());
    const std::size_t element = unit();
    for (std::size_t i = 0; i < expected_.size() && !op_.user; ++i)
        if (is_padding(op_.type, i % element)) expected_[i] = -1;
}

std::string CollectiveData::wrong() const {
    for (std::size_t i = 0; i < expected_.size(); ++i)
        if (expected_[i] >= 0 && output_[i] != expected_[i])
            return "octet " + std::to_string(i) + " of " + std::to_string(expected_.size());
    return {};
}

int CollectiveData::start(ulc_endpoint* ep, ulc_group group, ulc_coll** out) {
    switch (op_.kind) {
        case CollectiveKind::kBarrier:
            return ulc_barrier_start(ep, group,
                                     op_.algorithm.empty() ? nullptr : op_.algorithm.c_str(), out);
        case CollectiveKind::kAllgather:
        case CollectiveKind::kGather:
        case CollectiveKind::kScatter:
        case CollectiveKind::kAlltoall:
            return start_blocks(ep, group, out);
        case CollectiveKind::kBroadcast:
        case CollectiveKind::kReduce:
        case CollectiveKind::kAllreduce:
        case CollectiveKind::kReduceScatter:
        case CollectiveKind::kScan:
        case CollectiveKind::kExscan:
            break;
    }
    return start_vector(ep, group, out);
}

int CollectiveData::start_blocks(ulc_endpoint* ep, ulc_group group, ulc_coll** out) {
    const char* name = op_.algorithm.empty() ? nullptr : op_.algorithm.c_str();
    const bool rooted = op_.kind == CollectiveKind::kGather || op_.kind == CollectiveKind::kScatter;
    const bool in_place = op_.in_place && (!rooted || at_root());
    const bool scatters = op_.kind == CollectiveKind::kScatter;
    const void* input = in_place && !scatters ? nullptr : memory_of(input_);
    void* output = in_place && scatters ? nullptr : memory_of(output_);
    if (in_place && scatters) expected_.clear();
    const std::size_t own = blocks_.lengths[rank_];
    const std::size_t* lengths = blocks_.lengths.data();
    const std::size_t* offsets = blocks_.offsets.data();
    if (op_.kind == CollectiveKind::kGather && op_.uneven)
        return ulc_gatherv_start(ep, group, op_.root, input, own, output, lengths, offsets, name,
                                 out);
    if (op_.kind == CollectiveKind::kGather)
        return ulc_gather_start(ep, group, op_.root, input, output, own, name, out);
    if (scatters && op_.uneven)
        return ulc_scatterv_start(ep, group, op_.root, input, lengths, offsets, output, own, name,
                                  out);
    if (scatters) return ulc_scatter_start(ep, group, op_.root, input, output, own, name, out);
    if (op_.kind == CollectiveKind::kAllgather && op_.uneven)
        return ulc_allgatherv_start(ep, group, input, output, lengths, offsets, name, out);
    if (op_.kind == CollectiveKind::kAllgather)
        return ulc_allgather_start(ep, group, input, output, own, name, out);
    if (!op_.uneven) return ulc_alltoall_start(ep, group, input, output, own, name, out);
    return ulc_alltoallv_start(ep, group, input, in_place ? nullptr : given_.lengths.data(),
                               in_place ? nullptr : given_.offsets.data(), output, lengths, offsets,
                               name, out);
}

int CollectiveData::start_vector(ulc_endpoint* ep, ulc_group group, ulc_coll** out) {
    const char* name = op_.algorithm.empty() ? nullptr : op_.algorithm.c_str();
    void* output = memory_of(output_);
    if (op_.kind == CollectiveKind::kBroadcast)
        return ulc_broadcast_start(ep, group, op_.root, output, op_.octets, name, out);
    ulc_reduction reduction{};
    reduction.type = op_.user ? ULC_BYTES(2U) : op_.type;
    reduction.op = op_.user ? std::uint32_t{ULC_USER} : op_.op;
    if (op_.user) reduction.function = op_.commutes ? multiply : compose;
    reduction.commutative = op_.user && op_.commutes ? 1 : 0;
    const std::size_t count = input_.size() / unit();
    const bool rooted = op_.kind == CollectiveKind::kReduce;
    const bool in_place = op_.in_place && (!rooted || at_root());
    const void* input = in_place ? nullptr : memory_of(input_);
    if (rooted)
        return ulc_reduce_start(ep, group, op_.root, input, output, count, reduction, name, out);
    if (op_.kind == CollectiveKind::kAllreduce)
        return ulc_allreduce_start(ep, group, input, output, count, reduction, name, out);
    if (op_.kind == CollectiveKind::kScan)
        return ulc_scan_start(ep, group, input, output, count, reduction, name, out);
    if (op_.kind == CollectiveKind::kExscan)
        return ulc_exscan_start(ep, group, input, output, count, reduction, name, out);
    if (!op_.uneven)
        return ulc_reduce_scatter_block_start(
            ep, group, input, output, blocks_.lengths[rank_] / unit(), reduction, name, out);
    std::vector<std::size_t> counts = blocks_.lengths;
    for (std::size_t& one : counts)
        one /= unit();
    return ulc_reduce_scatter_start(ep, group, input, output, counts.data(), reduction, name, out);
}

}  // namespace ulc::sim
