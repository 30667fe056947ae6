/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_QUIET_H
#define TESTS_LIB_QUIET_H

/* From now on nobody reads the log. */
void quiet(void);

#endif
