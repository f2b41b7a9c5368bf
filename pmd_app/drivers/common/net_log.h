// SPDX-License-Identifier: BSD-3-Clause
// The log of one driver: each plug-in defines its name and its type of log.
#pragma once

#include <rte_log.h>

namespace ulc::nic {

extern int g_log_type;
extern const char* const g_driver_name;

#define NIC_LOG(level, format, ...)                                 \
    rte_log(RTE_LOG_##level, ::ulc::nic::g_log_type, "%s: " format, \
            ::ulc::nic::g_driver_name __VA_OPT__(, ) __VA_ARGS__)

}  // namespace ulc::nic
