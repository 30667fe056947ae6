/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_HTML_H
#define ROLL_SYNC_HTML_H

#include "base/str.h"

/*
 * Writing HTML. Markup of ours goes to the buffer as it is (roll_buf_add_c); everything else goes
 * through one of these, which leave nothing that could be taken for markup, in text and in quoted
 * attributes alike.
 */

/*
 * Text that others wrote: & < > " and ' as references; controls, bytes that are not UTF-8, and the
 * characters that change the direction of text visibly, as \xNN and \u{NNNN}.
 */
void roll_html_add(struct roll_buf *buf, struct roll_str text);
void roll_html_add_c(struct roll_buf *buf, const char *text);
/* The value of a parameter in the query of a link (RFC 3986, 3.4): all but unreserved bytes as %NN.
 */
void roll_html_add_param(struct roll_buf *buf, struct roll_str value);

#endif
