// SPDX-License-Identifier: BSD-3-Clause
// fi_prov_ini(), the one symbol of libulc-fi.so.
#include <rdma/providers/fi_prov.h>

#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/running_library.h"

namespace {

fi_provider provider = {
    .version = FI_VERSION(0, 1),
    .fi_version = 0,
    .context = {},
    .name = ulc::ofi::kName,
    .getinfo = ulc::ofi::get_info,
    .fabric = ulc::ofi::open_fabric,
    .cleanup = [] {},
};

}  // namespace

extern "C" FI_EXT_INI {
    // Applications skip providers older than what they ask for.
    provider.fi_version = ulc::ofi::running_version();
    return &provider;
}
