// SPDX-License-Identifier: BSD-3-Clause
// struct fid_fabric and struct fid_eq: the roots of the object tree. No operation of this provider
// reports through an event queue, so a queue is always empty.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <cstdint>

namespace ulc::ofi {

int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* context) noexcept;

/// Returns the object that a fid begins; Base is libfabric's struct of that class.
template <class Object, class Base>
Object& object_of(fid* handle) noexcept {
    return *static_cast<Object*>(reinterpret_cast<Base*>(handle));
}

}  // namespace ulc::ofi
