// SPDX-License-Identifier: BSD-3-Clause
// Calls every blocking collective of coll.h once at every rank, also in place if there is such a
// form. The input is a function of operation, giver, taker and byte. Every byte of the result is
// compared, and the gaps between blocks must stay unchanged.
//   collectives     exit 0 if all was right
// Lengths by rank from i to j differ from those from j to i, and the blocks have another order and
// other offsets in the output than in the input, so that a mix-up of the two shows.
#include <coll.h>
#include <sys/mman.h>
#include <ulc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kLimit = 60'000'000'000;  // ns
constexpr unsigned char kUntouched = 0xEE;
constexpr std::size_t kGap = 3;
constexpr std::size_t kEach = 5000;  // bytes of every block, if they are all equal
constexpr std::size_t kCount = 900;  // elements of a vector
constexpr std::uint16_t kRoot = 1;

using Octets = std::vector<unsigned char>;
using Sizes = std::vector<std::size_t>;
using Numbers = std::vector<std::uint64_t>;

unsigned calls = 0;

void need(const char* what, int error) {
    ++calls;
    if (error == ULC_OK) return;
    std::fprintf(stderr, "collectives: %s: %s (%s)\n", what, ulc_error_text(error),
                 ulc_last_error_text());
    std::exit(1);
}

template <typename T>
void compare(const char* what, const std::vector<T>& got, const std::vector<T>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (got.size() == expected.size() && got[i] == expected[i]) continue;
        std::fprintf(stderr, "collectives: %s: element %zu of %zu is wrong\n", what, i,
                     expected.size());
        std::exit(1);
    }
}

/// Blocks by rank in memory, with gaps in between.
struct Layout {
    Layout(Sizes by_rank, bool descending) : lengths(std::move(by_rank)), offsets(lengths.size()) {
        for (std::size_t n = 0; n < lengths.size(); ++n) {
            const std::size_t rank = descending ? lengths.size() - 1 - n : n;
            offsets[rank] = end + kGap;
            end += kGap + lengths[rank];
        }
    }
    /// Writes block(rank, octets) at each rank's place; the gaps are untouched.
    template <typename Block>
    [[nodiscard]] Octets filled(Block block) const {
        Octets memory(end, kUntouched);
        for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
            const Octets one = block(rank, lengths[rank]);
            if (!one.empty()) std::memcpy(memory.data() + offsets[rank], one.data(), one.size());
        }
        return memory;
    }
    [[nodiscard]] Octets untouched() const { return Octets(end, kUntouched); }

    Sizes lengths;
    Sizes offsets;
    std::size_t end = 0;
};

/// Blocks 2 GiB and an odd number apart, the last rank's first; the memory in between is not
/// allocated until it is touched.
class FarMemory {
public:
    explicit FarMemory(std::size_t ranks) : offsets(ranks), length_(ranks * kApart) {
        void* mapped = mmap(nullptr, length_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            std::perror("collectives: mmap");
            std::exit(1);
        }
        octets = static_cast<unsigned char*>(mapped);
        for (std::size_t rank = 0; rank < ranks; ++rank)
            offsets[rank] = (ranks - 1 - rank) * kApart;
    }
    FarMemory(const FarMemory&) = delete;
    FarMemory& operator=(const FarMemory&) = delete;
    ~FarMemory() { munmap(octets, length_); }

    void put(std::size_t rank, const Octets& block) const {
        if (!block.empty()) std::memcpy(octets + offsets[rank], block.data(), block.size());
    }
    /// Returns the block and empties it.
    [[nodiscard]] Octets take(std::size_t rank, std::size_t length) const {
        unsigned char* begin = octets + offsets[rank];
        Octets block(begin, begin + length);
        std::memset(begin, 0, length);
        return block;
    }

    Sizes offsets;
    unsigned char* octets = nullptr;

private:
    static constexpr std::size_t kApart = (std::size_t{2} << 30) + 12345;
    std::size_t length_;
};

/// Returns the block that `from` gives `to`.
Octets block_of(std::size_t from, std::size_t to, std::size_t octets) {
    Octets block(octets);
    for (std::size_t i = 0; i < octets; ++i)
        block[i] = static_cast<unsigned char>(from * 31 + to * 101 + i * 7 + i / 251);
    return block;
}

/// Returns the bytes from i to j: a different number than from j to i; some 0.
std::size_t directed(std::size_t from, std::size_t to) { return (from * 3 + to) % 7 * 700; }
std::size_t mutual(std::size_t one, std::size_t other) { return directed(0, one + other); }

std::uint64_t element_of(std::size_t rank, std::size_t i) { return (rank + 2) * (i * i + 1); }

class Collectives {
public:
    explicit Collectives(ulc_endpoint* ep)
        : ep_(ep), world_(ulc_world(ep)), rank_(ulc_rank(ep)), ranks_(ulc_size(ep)) {}

    void run() {
        need("barrier", ulc_barrier(ep_, world_));
        broadcast();
        gather();
        gatherv();
        scatter();
        scatterv();
        allgather();
        allgatherv();
        alltoall();
        alltoallv();
        alltoallv_in_place();
        reduce();
        allreduce();
        reduce_scatter();
        reduce_scatter_block();
        scan();
        exscan();
        far_blocks();
    }

private:
    [[nodiscard]] bool is_root() const { return rank_ == kRoot; }
    /// Returns `ranks` equal blocks, as `from` gives them (at each taker's place).
    [[nodiscard]] Octets given() const {
        Octets all;
        for (std::size_t to = 0; to < ranks_; ++to)
            append(all, block_of(rank_, to, kEach));
        return all;
    }
    /// Returns the blocks as rank `to` takes them (0: the same for all).
    [[nodiscard]] Octets taken(std::size_t to) const {
        Octets all;
        for (std::size_t from = 0; from < ranks_; ++from)
            append(all, block_of(from, to, kEach));
        return all;
    }
    static void append(Octets& all, const Octets& block) {
        all.insert(all.end(), block.begin(), block.end());
    }
    /// Returns a number of bytes for each rank, all different, the first 0.
    [[nodiscard]] Layout by_rank(bool descending) const {
        Sizes lengths(ranks_);
        for (std::size_t rank = 0; rank < ranks_; ++rank)
            lengths[rank] = rank * 1700;
        return {lengths, descending};
    }

    void broadcast() {
        Octets octets = is_root() ? block_of(kRoot, 0, kEach) : Octets(kEach, kUntouched);
        need("broadcast", ulc_broadcast(ep_, world_, kRoot, octets.data(), kEach));
        compare("broadcast", octets, block_of(kRoot, 0, kEach));
    }
    void gather() {
        const Octets own = block_of(rank_, 0, kEach);
        Octets all(is_root() ? ranks_ * kEach : 0, kUntouched);
        need("gather", ulc_gather(ep_, world_, kRoot, own.data(), all.data(), kEach));
        compare("gather", all, is_root() ? taken(0) : Octets{});
    }
    void gatherv() {
        const Layout layout = by_rank(true);
        const auto block = [](std::size_t from, std::size_t n) { return block_of(from, 0, n); };
        const Octets own = block_of(rank_, 0, layout.lengths[rank_]);
        Octets all = layout.untouched();
        need("gatherv", ulc_gatherv(ep_, world_, kRoot, own.data(), own.size(), all.data(),
                                    is_root() ? layout.lengths.data() : nullptr,
                                    is_root() ? layout.offsets.data() : nullptr));
        compare("gatherv", all, is_root() ? layout.filled(block) : layout.untouched());
    }
    void scatter() {
        const Octets all = is_root() ? given() : Octets{};
        Octets own(kEach, kUntouched);
        need("scatter", ulc_scatter(ep_, world_, kRoot, all.data(), own.data(), kEach));
        compare("scatter", own, block_of(kRoot, rank_, kEach));
    }
    void scatterv() {
        const Layout layout = by_rank(true);
        const auto block = [](std::size_t to, std::size_t n) { return block_of(kRoot, to, n); };
        const Octets all = is_root() ? layout.filled(block) : Octets{};
        Octets own(layout.lengths[rank_], kUntouched);
        need("scatterv",
             ulc_scatterv(ep_, world_, kRoot, all.data(),
                          is_root() ? layout.lengths.data() : nullptr,
                          is_root() ? layout.offsets.data() : nullptr, own.data(), own.size()));
        compare("scatterv", own, block_of(kRoot, rank_, own.size()));
    }
    void allgather() {
        const Octets own = block_of(rank_, 0, kEach);
        Octets all(ranks_ * kEach, kUntouched);
        need("allgather", ulc_allgather(ep_, world_, own.data(), all.data(), kEach));
        compare("allgather", all, taken(0));
        all.assign(all.size(), kUntouched);
        std::memcpy(all.data() + rank_ * kEach, own.data(), kEach);
        need("allgather in place", ulc_allgather(ep_, world_, nullptr, all.data(), kEach));
        compare("allgather in place", all, taken(0));
    }
    void allgatherv() {
        const Layout layout = by_rank(true);
        const auto block = [](std::size_t from, std::size_t n) { return block_of(from, 0, n); };
        // An empty block has an address too: NULL would mean that the call is in place.
        Octets own = block_of(rank_, 0, layout.lengths[rank_]);
        own.reserve(1);
        Octets all = layout.untouched();
        need("allgatherv", ulc_allgatherv(ep_, world_, own.data(), all.data(),
                                          layout.lengths.data(), layout.offsets.data()));
        compare("allgatherv", all, layout.filled(block));
    }
    void alltoall() {
        const Octets input = given();
        Octets output(input.size(), kUntouched);
        need("alltoall", ulc_alltoall(ep_, world_, input.data(), output.data(), kEach));
        compare("alltoall", output, taken(rank_));
        output = input;
        need("alltoall in place", ulc_alltoall(ep_, world_, nullptr, output.data(), kEach));
        compare("alltoall in place", output, taken(rank_));
    }
    void alltoallv() {
        Sizes to_each(ranks_);
        Sizes from_each(ranks_);
        for (std::size_t other = 0; other < ranks_; ++other) {
            to_each[other] = directed(rank_, other);
            from_each[other] = directed(other, rank_);
        }
        const Layout in(to_each, false);
        const Layout out(from_each, true);
        const Octets input =
            in.filled([&](std::size_t to, std::size_t n) { return block_of(rank_, to, n); });
        Octets output = out.untouched();
        need("alltoallv",
             ulc_alltoallv(ep_, world_, input.data(), in.lengths.data(), in.offsets.data(),
                           output.data(), out.lengths.data(), out.offsets.data()));
        compare("alltoallv", output, out.filled([&](std::size_t from, std::size_t n) {
            return block_of(from, rank_, n);
        }));
    }
    void alltoallv_in_place() {
        Sizes lengths(ranks_);
        for (std::size_t other = 0; other < ranks_; ++other)
            lengths[other] = mutual(rank_, other);
        const Layout layout(lengths, true);
        Octets octets =
            layout.filled([&](std::size_t to, std::size_t n) { return block_of(rank_, to, n); });
        need("alltoallv in place",
             ulc_alltoallv(ep_, world_, nullptr, nullptr, nullptr, octets.data(),
                           layout.lengths.data(), layout.offsets.data()));
        compare("alltoallv in place", octets, layout.filled([&](std::size_t from, std::size_t n) {
            return block_of(from, rank_, n);
        }));
    }

    [[nodiscard]] static Numbers operand(std::size_t rank, std::size_t count) {
        Numbers numbers(count);
        for (std::size_t i = 0; i < count; ++i)
            numbers[i] = element_of(rank, i);
        return numbers;
    }
    /// Returns sums of `count` elements from `first` on, of the ranks before `end`.
    [[nodiscard]] static Numbers sum(std::size_t end, std::size_t first, std::size_t count) {
        Numbers numbers(count, 0);
        for (std::size_t rank = 0; rank < end; ++rank)
            for (std::size_t i = 0; i < count; ++i)
                numbers[i] += element_of(rank, first + i);
        return numbers;
    }

    void reduce() {
        const Numbers own = operand(rank_, kCount);
        Numbers result(is_root() ? kCount : 0);
        need("reduce", ulc_reduce(ep_, world_, kRoot, own.data(), result.data(), kCount, kSum));
        compare("reduce", result, is_root() ? sum(ranks_, 0, kCount) : Numbers{});
    }
    void allreduce() {
        const Numbers own = operand(rank_, kCount);
        Numbers result(kCount);
        need("allreduce", ulc_allreduce(ep_, world_, own.data(), result.data(), kCount, kSum));
        compare("allreduce", result, sum(ranks_, 0, kCount));
        result = own;
        need("allreduce in place",
             ulc_allreduce(ep_, world_, nullptr, result.data(), kCount, kSum));
        compare("allreduce in place", result, sum(ranks_, 0, kCount));
    }
    void reduce_scatter() {
        Sizes counts(ranks_);
        std::size_t first = 0;
        std::size_t all = 0;
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            if (rank == rank_) first = all;
            counts[rank] = 100 + 300 * rank;
            all += counts[rank];
        }
        const Numbers own = operand(rank_, all);
        Numbers result(counts[rank_]);
        need("reduce_scatter",
             ulc_reduce_scatter(ep_, world_, own.data(), result.data(), counts.data(), kSum));
        compare("reduce_scatter", result, sum(ranks_, first, counts[rank_]));
    }
    void reduce_scatter_block() {
        const Numbers own = operand(rank_, ranks_ * kCount);
        Numbers result(kCount);
        need("reduce_scatter_block",
             ulc_reduce_scatter_block(ep_, world_, own.data(), result.data(), kCount, kSum));
        compare("reduce_scatter_block", result, sum(ranks_, rank_ * kCount, kCount));
    }
    void scan() {
        const Numbers own = operand(rank_, kCount);
        Numbers result(kCount);
        need("scan", ulc_scan(ep_, world_, own.data(), result.data(), kCount, kSum));
        compare("scan", result, sum(rank_ + 1U, 0, kCount));
    }
    void exscan() {
        const Numbers own = operand(rank_, kCount);
        const Numbers before(kCount, 1);
        Numbers result = before;
        need("exscan", ulc_exscan(ep_, world_, own.data(), result.data(), kCount, kSum));
        compare("exscan", result, rank_ == 0 ? before : sum(rank_, 0, kCount));
    }

    /// Runs the operations with blocks by rank, with displacements that fit neither into 31 nor
    /// into 32 bits.
    void far_blocks() {
        const FarMemory in(ranks_);
        const FarMemory out(ranks_);
        Sizes lengths(ranks_);
        for (std::size_t rank = 0; rank < ranks_; ++rank)
            lengths[rank] = rank * 1700;
        Octets own = block_of(rank_, 0, lengths[rank_]);
        own.reserve(1);
        need("far gatherv", ulc_gatherv(ep_, world_, kRoot, own.data(), own.size(), out.octets,
                                        lengths.data(), out.offsets.data()));
        for (std::size_t rank = 0; rank < ranks_ && is_root(); ++rank)
            compare("far gatherv", out.take(rank, lengths[rank]), block_of(rank, 0, lengths[rank]));
        need("far allgatherv", ulc_allgatherv(ep_, world_, own.data(), out.octets, lengths.data(),
                                              out.offsets.data()));
        for (std::size_t rank = 0; rank < ranks_; ++rank)
            compare("far allgatherv", out.take(rank, lengths[rank]),
                    block_of(rank, 0, lengths[rank]));
        for (std::size_t rank = 0; rank < ranks_; ++rank)
            in.put(rank, block_of(kRoot, rank, lengths[rank]));
        need("far scatterv", ulc_scatterv(ep_, world_, kRoot, in.octets, lengths.data(),
                                          in.offsets.data(), own.data(), own.size()));
        compare("far scatterv", own, block_of(kRoot, rank_, own.size()));
        Sizes to_each(ranks_);
        Sizes from_each(ranks_);
        for (std::size_t other = 0; other < ranks_; ++other) {
            to_each[other] = directed(rank_, other);
            from_each[other] = directed(other, rank_);
            in.put(other, block_of(rank_, other, to_each[other]));
        }
        need("far alltoallv",
             ulc_alltoallv(ep_, world_, in.octets, to_each.data(), in.offsets.data(), out.octets,
                           from_each.data(), out.offsets.data()));
        for (std::size_t other = 0; other < ranks_; ++other)
            compare("far alltoallv", out.take(other, from_each[other]),
                    block_of(other, rank_, from_each[other]));
    }

    static constexpr ulc_reduction kSum{ULC_UINT64, ULC_SUM, nullptr, nullptr, 0};

    ulc_endpoint* ep_;
    ulc_group world_;
    std::uint16_t rank_;
    std::size_t ranks_;
};

}  // namespace

int main() {
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    calls = 0;
    Collectives(ep).run();
    if (ulc_rank(ep) == 0)
        std::printf("collectives: %u calls by %u ranks are right\n", calls, unsigned{ulc_size(ep)});
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
    return 0;
}
