/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins; says what express_init() returned. Compiled twice, with and without OTHER. */
#include "check.h"

static void on_message(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message, (void)length;
#ifdef OTHER
    puts("another build");
#endif
}

int main(void) {
    const express_handler handlers[] = {on_message};
    const int error = express_init(handlers, 1);
    printf("build: %s\n", error == ULC_ERR_MISMATCH ? "differs" : ulc_error_text(error));
    return 0;
}
