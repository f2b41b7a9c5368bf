// SPDX-License-Identifier: BSD-3-Clause
// No congestion control: window and credit alone bound a stream, as in URTP and U-Net MPI.
#include "urtp/policies/tables.h"

namespace ulc::urtp {

const Policy kOpen = {
    .word = "open",
    .help = "no congestion control",
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
