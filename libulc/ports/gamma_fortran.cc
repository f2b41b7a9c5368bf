// SPDX-License-Identifier: BSD-3-Clause
// The functions of gamma.h for Fortran, whose arguments are references and whose names end in an
// underscore. gamma.f90 declares them. A handler that is gamma_no_handler() is none.
#include "ports/gamma.h"

extern "C" {

using fortran_handler = void (*)();

GAMMA_API void gamma_no_handler_() {}

GAMMA_API int gamma_init_(const int* num_nodes) { return gamma_init(*num_nodes, 0, nullptr); }
GAMMA_API int gamma_exit_() { return gamma_exit(); }

GAMMA_API int gamma_setport_(const int* port, const int* dest_node, const int* dest_par_pid,
                             const int* dest_port, fortran_handler handler_in,
                             fortran_handler handler_err, void* buffer, const int* length) {
    const auto in_range = [](int value) { return value >= 0 && value < GAMMA_PORTS; };
    if (!in_range(*port) || !in_range(*dest_node) || !in_range(*dest_par_pid) ||
        !in_range(*dest_port) || *length < 0)
        return -1;
    const auto given = [](fortran_handler handler) -> gamma_handler {
        return handler == gamma_no_handler_ ? nullptr : handler;
    };
    return gamma_setport(static_cast<unsigned char>(*port), static_cast<unsigned char>(*dest_node),
                         static_cast<unsigned char>(*dest_par_pid),
                         static_cast<unsigned char>(*dest_port), given(handler_in),
                         given(handler_err), *length == 0 ? nullptr : buffer,
                         static_cast<unsigned long>(*length));
}

GAMMA_API int gamma_attach_buffer_(const int* port, void* buffer) {
    if (*port < 0 || *port >= GAMMA_PORTS) return -1;
    return gamma_attach_buffer(static_cast<unsigned char>(*port), buffer);
}

#define GAMMA_SEND_FOR_FORTRAN(name)                                                               \
    GAMMA_API int name##_(const int* port, const void* data, const int* length) {                  \
        if (*port < 0 || *port >= GAMMA_PORTS || *length < 0) return -1;                           \
        return name(static_cast<unsigned char>(*port), data, static_cast<unsigned long>(*length)); \
    }
GAMMA_SEND_FOR_FORTRAN(gamma_send)
GAMMA_SEND_FOR_FORTRAN(gamma_send_fast)
GAMMA_SEND_FOR_FORTRAN(gamma_send_flowctl)

#define GAMMA_SEMAPHORE_FOR_FORTRAN(name)               \
    GAMMA_API int name##_(const int* sem) {             \
        if (*sem < 0 || *sem >= GAMMA_PORTS) return -1; \
        return name(static_cast<unsigned char>(*sem));  \
    }
GAMMA_SEMAPHORE_FOR_FORTRAN(gamma_signal)
GAMMA_SEMAPHORE_FOR_FORTRAN(gamma_sigerr)
GAMMA_SEMAPHORE_FOR_FORTRAN(gamma_test)

GAMMA_API int gamma_wait_(const int* sem, const int* n) {
    if (*sem < 0 || *sem >= GAMMA_PORTS || *n < 0) return -1;
    return gamma_wait(static_cast<unsigned char>(*sem), static_cast<unsigned long>(*n));
}

GAMMA_API int gamma_atomic_(void (*function)()) { return gamma_atomic(function); }
GAMMA_API int gamma_sync_() { return gamma_sync(); }
GAMMA_API int gamma_my_par_pid_() { return gamma_my_par_pid(); }
GAMMA_API int gamma_my_node_() { return gamma_my_node(); }
GAMMA_API int gamma_how_many_nodes_() { return gamma_how_many_nodes(); }

GAMMA_API int gamma_mlock_(void* buffer, const int* length) {
    return *length < 0 ? -1 : gamma_mlock(buffer, static_cast<unsigned long>(*length));
}
GAMMA_API int gamma_munlock_(void* buffer, const int* length) {
    return *length < 0 ? -1 : gamma_munlock(buffer, static_cast<unsigned long>(*length));
}
GAMMA_API int gamma_munlockall_() { return gamma_munlockall(); }

GAMMA_API int gamma_get_active_port_() { return gamma_active_port; }
GAMMA_API int gamma_get_errno_() { return gamma_errno; }

/// Microseconds on the clock of gamma_time().
GAMMA_API double gamma_microseconds_() {
    time_586 zero = {{0, 0}};
    time_586 now;
    gamma_time(now);
    return gamma_time_diff(now, zero);
}

}  // extern "C"
