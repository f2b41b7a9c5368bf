// SPDX-License-Identifier: BSD-3-Clause
// Has the flags with which standard.h is compiled.
