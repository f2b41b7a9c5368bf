// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mpi/pipelines.h"

#include <algorithm>

#include "coll/mpi/buffers.h"

namespace ulc::mpi {
namespace {

class PiecewiseBroadcast final : public Operation {
public:
    PiecewiseBroadcast(ulc_mpi_comm& comm, ulc_mpi_pending* pending, std::uint16_t root,
                       std::size_t bytes)
        : Operation(comm, "MPI_Bcast", pending),
          group_(comm.group),
          bytes_(bytes),
          root_(root),
          is_root_(comm.self == root) {
        split((bytes + kPieceBytes - 1) / kPieceBytes);
    }
    ~PiecewiseBroadcast() override { close_stream(); }

    /// False: no memory.
    [[nodiscard]] bool take(const ulc_mpi_type& type, void* buffer, std::size_t count) {
        const ulc_mpi_hooks& mpi = session().hooks();
        if (type.tight || mpi.contiguous(&type, count) != 0) {
            plain_ = moved(buffer, type.true_lb);
            return true;
        }
        type_ = type;
        buffer_ = buffer;
        count_ = count;
        scratch_.reset(new (std::nothrow) unsigned char[kSlots * kPieceBytes]);
        return scratch_ != nullptr && refill();
    }
    [[nodiscard]] bool finish() override { return true; }

private:
    [[nodiscard]] std::size_t length(std::size_t piece) const {
        return std::min(kPieceBytes, bytes_ - piece * kPieceBytes);
    }
    [[nodiscard]] unsigned char* data(std::size_t piece) {
        return plain_ != nullptr ? plain_ + piece * kPieceBytes
                                 : scratch_.get() + piece % kSlots * kPieceBytes;
    }
    void close_stream() {
        if (stream_ != nullptr) session().hooks().close_stream(stream_);
        stream_ = nullptr;
    }
    /// Puts the stream at its beginning.
    bool refill() override {
        if (plain_ != nullptr) return true;
        close_stream();
        packed_ = 0;
        stream_ = session().hooks().open_stream(&type_, count_, buffer_, is_root_ ? 1 : 0);
        return stream_ != nullptr;
    }
    int start(std::size_t piece, ulc_coll** out) override {
        // A start that is deferred is tried again: its piece is packed already.
        if (is_root_ && stream_ != nullptr && packed_ == piece) {
            if (session().hooks().move_stream(stream_, data(piece), length(piece)) != 0)
                return ULC_ERR_NO_MEMORY;
            ++packed_;
        }
        return ulc_broadcast_start(session().endpoint(), group_, root_, data(piece), length(piece),
                                   nullptr, out);
    }
    bool take_result(std::size_t piece) override {
        return is_root_ || stream_ == nullptr ||
               session().hooks().move_stream(stream_, data(piece), length(piece)) == 0;
    }

    ulc_group group_;
    std::size_t bytes_;
    std::uint16_t root_;
    bool is_root_;
    ulc_mpi_type type_{};
    void* buffer_ = nullptr;
    std::size_t count_ = 0;
    std::size_t packed_ = 0;          ///< pieces
    unsigned char* plain_ = nullptr;  ///< the data, if they lie in memory as they are packed
    std::unique_ptr<unsigned char[]> scratch_;
    void* stream_ = nullptr;
};

}  // namespace

int broadcast_in_pieces(ulc_mpi_comm& comm, std::uint16_t root, void* buffer, std::size_t count,
                        const ulc_mpi_type& type, ulc_mpi_pending* pending) {
    std::unique_ptr<PiecewiseBroadcast> operation(
        new (std::nothrow) PiecewiseBroadcast(comm, pending, root, count * type.size));
    if (!operation || !operation->take(type, buffer, count)) return ULC_ERR_NO_MEMORY;
    return session().perform(std::move(operation));
}

}  // namespace ulc::mpi
