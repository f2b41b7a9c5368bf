// SPDX-License-Identifier: BSD-3-Clause
// The operations that move data. Each takes its buffers and performs an operation of coll.h, which
// gives them back at its end. In place: ULC's own in-place form if the memory has ULC's layout; if
// it is packed, the own block is packed like an input.
#include <coll.h>

#include <cstring>

#include "coll/coll_for_mpi.h"
#include "coll/mpi/buffers.h"
#include "coll/mpi/operation.h"
#include "coll/mpi/pipelines.h"

namespace ulc::mpi {
namespace {

[[nodiscard]] ulc_endpoint* ep() { return session().endpoint(); }

[[nodiscard]] const void* element(const void* memory, const ulc_mpi_type& type, std::size_t index) {
    return moved(memory, static_cast<std::ptrdiff_t>(index) * type.extent);
}

/// The buffers of a member: its input and its output.
template <typename In, typename Out>
struct Ends {
    In in;
    Out out;

    [[nodiscard]] bool refill() { return in.refill() && out.refill(); }
};

/// The blocks of a member's edges in one direction.
class Edges {
public:
    /// Takes the blocks of those that lead to a rank, as Buffer::take().
    [[nodiscard]] bool take(const ulc_mpi_edges& given, bool fill) {
        try {
            std::vector<ulc_mpi_block> blocks;
            for (std::size_t i = 0; i < given.count; ++i) {
                if (given.peers[i] < 0) continue;
                edges_.push_back({static_cast<std::uint16_t>(given.peers[i]), 0, 0});
                blocks.push_back(given.blocks[i]);
            }
            if (!blocks_.take(blocks.data(), blocks.size(), fill)) return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            edges_[i].offset = blocks_.offsets()[i];
            edges_[i].length = blocks_.lengths()[i];
        }
        return true;
    }
    [[nodiscard]] bool refill() { return blocks_.refill(); }
    [[nodiscard]] bool give_back() { return blocks_.give_back(); }
    [[nodiscard]] unsigned char* data() { return blocks_.data(); }
    [[nodiscard]] const ulc_edge* edges() const { return edges_.data(); }
    [[nodiscard]] std::size_t count() const { return edges_.size(); }

private:
    TypedBlocks blocks_;
    std::vector<ulc_edge> edges_;
};

}  // namespace
}  // namespace ulc::mpi

using namespace ulc::mpi;  // NOLINT(google-build-using-namespace): the C entries of this namespace

extern "C" {

int ulc_mpi_barrier(ulc_mpi_comm* comm, ulc_mpi_pending* pending) {
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Barrier", pending, NoData{},
        [=](NoData&, ulc_coll** op) { return ulc_barrier_start(ep(), group, nullptr, op); },
        [](NoData&) { return true; });
}

int ulc_mpi_bcast(ulc_mpi_comm* comm, int root, void* buffer, size_t count,
                  const ulc_mpi_type* type, ulc_mpi_pending* pending) {
    const std::size_t bytes = count * type->size;
    if (bytes == 0) return perform_nothing(pending);
    if (goes_in_pieces(bytes))
        return broadcast_in_pieces(*comm, static_cast<uint16_t>(root), buffer, count, *type,
                                   pending);
    const bool is_root = comm->self == root;
    Buffer data;
    if (!data.take(*type, buffer, count, is_root)) return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Bcast", pending, std::move(data),
        [=](Buffer& moved_data, ulc_coll** op) {
            return ulc_broadcast_start(ep(), group, static_cast<uint16_t>(root), moved_data.data(),
                                       bytes, nullptr, op);
        },
        [=](Buffer& moved_data) { return is_root || moved_data.give_back(); });
}

int ulc_mpi_gather(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                   size_t input_count, const ulc_mpi_type* input_type, void* output,
                   size_t output_count, const ulc_mpi_type* output_type, ulc_mpi_pending* pending) {
    const std::uint16_t self = comm->self;
    const bool is_root = self == root;
    in_place = is_root && in_place;
    const std::size_t bytes =
        in_place ? output_count * output_type->size : input_count * input_type->size;
    if (bytes == 0) return perform_nothing(pending);
    Ends<Buffer, Buffer> ends;
    if (is_root && !ends.out.take(*output_type, output, comm->count * output_count, false))
        return ULC_ERR_NO_MEMORY;
    if (in_place && ends.out.is_scratch()) {
        if (!ends.in.take(*output_type, element(output, *output_type, self * output_count),
                          output_count, true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !ends.in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Gather", pending, std::move(ends),
        [=](Ends<Buffer, Buffer>& given, ulc_coll** op) {
            return ulc_gather_start(ep(), group, static_cast<uint16_t>(root),
                                    in_place ? nullptr : given.in.data(), given.out.data(), bytes,
                                    nullptr, op);
        },
        [](Ends<Buffer, Buffer>& given) { return given.out.give_back(); });
}

int ulc_mpi_gatherv(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                    size_t input_count, const ulc_mpi_type* input_type, void* output,
                    ulc_mpi_blocks blocks, const ulc_mpi_type* output_type,
                    ulc_mpi_pending* pending) {
    const std::uint16_t self = comm->self;
    const bool is_root = self == root;
    in_place = is_root && in_place;
    Ends<Buffer, Blocks> ends;
    if (is_root && !ends.out.take(*output_type, output, blocks, comm->count, false))
        return ULC_ERR_NO_MEMORY;
    const std::size_t bytes = in_place ? ends.out.lengths()[self] : input_count * input_type->size;
    if (in_place && ends.out.is_scratch()) {
        if (!ends.in.take(*output_type, ends.out.block(self), count_of(blocks, self), true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !ends.in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Gatherv", pending, std::move(ends),
        [=](Ends<Buffer, Blocks>& given, ulc_coll** op) {
            return ulc_gatherv_start(ep(), group, static_cast<uint16_t>(root),
                                     in_place ? nullptr : given.in.data(), bytes, given.out.data(),
                                     is_root ? given.out.lengths() : nullptr,
                                     is_root ? given.out.offsets() : nullptr, nullptr, op);
        },
        [](Ends<Buffer, Blocks>& given) { return given.out.give_back(); });
}

int ulc_mpi_scatter(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                    size_t input_count, const ulc_mpi_type* input_type, void* output,
                    size_t output_count, const ulc_mpi_type* output_type,
                    ulc_mpi_pending* pending) {
    const bool is_root = comm->self == root;
    in_place = is_root && in_place;
    const std::size_t bytes =
        is_root ? input_count * input_type->size : output_count * output_type->size;
    if (bytes == 0) return perform_nothing(pending);
    Ends<Buffer, Buffer> ends;
    if (is_root && !ends.in.take(*input_type, input, comm->count * input_count, true))
        return ULC_ERR_NO_MEMORY;
    if (!in_place && !ends.out.take(*output_type, output, output_count, false))
        return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Scatter", pending, std::move(ends),
        [=](Ends<Buffer, Buffer>& given, ulc_coll** op) {
            return ulc_scatter_start(ep(), group, static_cast<uint16_t>(root), given.in.data(),
                                     in_place ? nullptr : given.out.data(), bytes, nullptr, op);
        },
        [](Ends<Buffer, Buffer>& given) { return given.out.give_back(); });
}

int ulc_mpi_scatterv(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                     ulc_mpi_blocks blocks, const ulc_mpi_type* input_type, void* output,
                     size_t output_count, const ulc_mpi_type* output_type,
                     ulc_mpi_pending* pending) {
    const std::uint16_t self = comm->self;
    const bool is_root = self == root;
    in_place = is_root && in_place;
    Ends<Blocks, Buffer> ends;
    if (is_root && !ends.in.take(*input_type, input, blocks, comm->count, true))
        return ULC_ERR_NO_MEMORY;
    if (!in_place && !ends.out.take(*output_type, output, output_count, false))
        return ULC_ERR_NO_MEMORY;
    const std::size_t bytes = in_place ? ends.in.lengths()[self] : output_count * output_type->size;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Scatterv", pending, std::move(ends),
        [=](Ends<Blocks, Buffer>& given, ulc_coll** op) {
            return ulc_scatterv_start(ep(), group, static_cast<uint16_t>(root), given.in.data(),
                                      is_root ? given.in.lengths() : nullptr,
                                      is_root ? given.in.offsets() : nullptr,
                                      in_place ? nullptr : given.out.data(), bytes, nullptr, op);
        },
        [](Ends<Blocks, Buffer>& given) { return given.out.give_back(); });
}

int ulc_mpi_allgather(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                      const ulc_mpi_type* input_type, void* output, size_t output_count,
                      const ulc_mpi_type* output_type, ulc_mpi_pending* pending) {
    const std::size_t bytes = output_count * output_type->size;
    if (bytes == 0) return perform_nothing(pending);
    Ends<Buffer, Buffer> ends;
    if (!ends.out.take(*output_type, output, comm->count * output_count, false))
        return ULC_ERR_NO_MEMORY;
    if (in_place && ends.out.is_scratch()) {
        if (!ends.in.take(*output_type, element(output, *output_type, comm->self * output_count),
                          output_count, true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !ends.in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Allgather", pending, std::move(ends),
        [=](Ends<Buffer, Buffer>& given, ulc_coll** op) {
            return ulc_allgather_start(ep(), group, in_place ? nullptr : given.in.data(),
                                       given.out.data(), bytes, nullptr, op);
        },
        [](Ends<Buffer, Buffer>& given) { return given.out.give_back(); });
}

int ulc_mpi_allgatherv(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                       const ulc_mpi_type* input_type, void* output, ulc_mpi_blocks blocks,
                       const ulc_mpi_type* output_type, ulc_mpi_pending* pending) {
    const std::uint16_t self = comm->self;
    Ends<Buffer, Blocks> ends;
    if (!ends.out.take(*output_type, output, blocks, comm->count, false)) return ULC_ERR_NO_MEMORY;
    if (in_place && ends.out.is_scratch()) {
        if (!ends.in.take(*output_type, ends.out.block(self), count_of(blocks, self), true))
            return ULC_ERR_NO_MEMORY;
        in_place = 0;
    } else if (!in_place && !ends.in.take(*input_type, input, input_count, true)) {
        return ULC_ERR_NO_MEMORY;
    }
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Allgatherv", pending, std::move(ends),
        [=](Ends<Buffer, Blocks>& given, ulc_coll** op) {
            return ulc_allgatherv_start(ep(), group, in_place ? nullptr : given.in.data(),
                                        given.out.data(), given.out.lengths(), given.out.offsets(),
                                        nullptr, op);
        },
        [](Ends<Buffer, Blocks>& given) { return given.out.give_back(); });
}

int ulc_mpi_alltoall(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                     const ulc_mpi_type* input_type, void* output, size_t output_count,
                     const ulc_mpi_type* output_type, ulc_mpi_pending* pending) {
    const std::size_t bytes = output_count * output_type->size;
    if (bytes == 0) return perform_nothing(pending);
    Ends<Buffer, Buffer> ends;
    if (!ends.out.take(*output_type, output, comm->count * output_count, in_place != 0))
        return ULC_ERR_NO_MEMORY;
    if (!in_place && !ends.in.take(*input_type, input, comm->count * input_count, true))
        return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Alltoall", pending, std::move(ends),
        [=](Ends<Buffer, Buffer>& given, ulc_coll** op) {
            return ulc_alltoall_start(ep(), group, in_place ? nullptr : given.in.data(),
                                      given.out.data(), bytes, nullptr, op);
        },
        [](Ends<Buffer, Buffer>& given) { return given.out.give_back(); });
}

int ulc_mpi_alltoallv(ulc_mpi_comm* comm, int in_place, const void* input, ulc_mpi_blocks from,
                      const ulc_mpi_type* input_type, void* output, ulc_mpi_blocks to,
                      const ulc_mpi_type* output_type, ulc_mpi_pending* pending) {
    Ends<Blocks, Blocks> ends;
    if (!ends.out.take(*output_type, output, to, comm->count, in_place != 0))
        return ULC_ERR_NO_MEMORY;
    if (!in_place && !ends.in.take(*input_type, input, from, comm->count, true))
        return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Alltoallv", pending, std::move(ends),
        [=](Ends<Blocks, Blocks>& given, ulc_coll** op) {
            return ulc_alltoallv_start(ep(), group, in_place ? nullptr : given.in.data(),
                                       in_place ? nullptr : given.in.lengths(),
                                       in_place ? nullptr : given.in.offsets(), given.out.data(),
                                       given.out.lengths(), given.out.offsets(), nullptr, op);
        },
        [](Ends<Blocks, Blocks>& given) { return given.out.give_back(); });
}

int ulc_mpi_alltoallw(ulc_mpi_comm* comm, int in_place, const ulc_mpi_block* from,
                      const ulc_mpi_block* to, ulc_mpi_pending* pending) {
    Ends<TypedBlocks, TypedBlocks> ends;
    if (!ends.out.take(to, comm->count, in_place != 0)) return ULC_ERR_NO_MEMORY;
    if (!in_place && !ends.in.take(from, comm->count, true)) return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Alltoallw", pending, std::move(ends),
        [=](Ends<TypedBlocks, TypedBlocks>& given, ulc_coll** op) {
            return ulc_alltoallv_start(ep(), group, in_place ? nullptr : given.in.data(),
                                       in_place ? nullptr : given.in.lengths(),
                                       in_place ? nullptr : given.in.offsets(), given.out.data(),
                                       given.out.lengths(), given.out.offsets(), nullptr, op);
        },
        [](Ends<TypedBlocks, TypedBlocks>& given) { return given.out.give_back(); });
}

int ulc_mpi_neighbors(ulc_mpi_comm* comm, ulc_mpi_edges to, ulc_mpi_edges from,
                      ulc_mpi_pending* pending) {
    Ends<Edges, Edges> ends;
    if (!ends.in.take(to, true) || !ends.out.take(from, false)) return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Neighbor_alltoallw or its like", pending, std::move(ends),
        [=](Ends<Edges, Edges>& given, ulc_coll** op) {
            return ulc_neighbours_start(ep(), group, given.in.data(), given.in.edges(),
                                        given.in.count(), given.out.data(), given.out.edges(),
                                        given.out.count(), op);
        },
        [](Ends<Edges, Edges>& given) { return given.out.give_back(); });
}

}  // extern "C"
