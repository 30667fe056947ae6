/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_PAGE_H
#define ROLL_SYNC_PAGE_H

#include "sync/run.h"

/*
 * What --http shows to people: plain HTML that needs no script and nothing from anywhere else, and
 * changes nothing. Read from the last commit. However large the view, one page looks at a few
 * thousand rows at most and shows some dozens; the rest is behind a link.
 *
 *	/		how things are; with ?q=NAME, what is answered for a name and why
 *	/zones		every domain that a DNSZone wants
 *	/zone?d=	names of one of them, with who serves and who lost
 *	/lost		names that some object claims in vain
 *	/findings	what is wrong with objects
 *	/removals	what was there, and what proved that it is gone
 */
enum roll_status roll_page_attach(struct roll_run *run) ROLL_MUST_CHECK;

#endif
