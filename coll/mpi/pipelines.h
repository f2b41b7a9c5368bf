// SPDX-License-Identifier: BSD-3-Clause
// Declares operations that move long data in pieces, so that a member whose type has gaps packs a
// piece while another is in progress, in bounded memory. The bytes of a call alone decide whether
// it goes in pieces: every member cuts alike, whatever its type.
#pragma once

#include "coll/mpi/operation.h"

namespace ulc::mpi {

/// Two pieces are in progress, so this is half of the scratch memory that an operation takes.
inline constexpr std::size_t kPieceBytes = std::size_t{512} << 10;

/// Broadcasts longer ones in pieces.
[[nodiscard]] inline bool goes_in_pieces(std::size_t bytes) { return bytes > 2 * kPieceBytes; }

/// MPI_Bcast in pieces; arguments as ulc_mpi_bcast().
[[nodiscard]] int broadcast_in_pieces(ulc_mpi_comm& comm, std::uint16_t root, void* buffer,
                                      std::size_t count, const ulc_mpi_type& type,
                                      ulc_mpi_pending* pending);

}  // namespace ulc::mpi
