/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_ERR_H
#define ROLL_BASE_ERR_H

/*
 * Status codes and error details.
 *
 * Everything that can fail returns enum roll_status: 0 is success, negative is an error.
 * Where the cause is known, a struct roll_err (optional, may be NULL) is filled in as well.
 * Library codes (errno, LMDB, libyaml, libcurl) are translated once, at the module that hides
 * the library.
 */

enum roll_status {
	ROLL_OK = 0,
	ROLL_ENOMEM = -1, /* memory, real or injected */
	ROLL_ELIMIT = -2, /* a ceiling of ours: size, depth, count */
	ROLL_EINVAL = -3, /* input that breaks its own rules */
	ROLL_ENOENT = -4, /* not there; never used for "could not look" */
	ROLL_EEXIST = -5,
	ROLL_EIO = -6,	      /* operating system or device */
	ROLL_ECORRUPT = -7,   /* stored bytes that we would not have written */
	ROLL_EVERSION = -8,   /* stored by another format version */
	ROLL_EFULL = -9,      /* the LMDB map is full: grow and repeat */
	ROLL_EBUSY = -10,     /* somebody else holds it */
	ROLL_EAGAIN = -11,    /* not now; repeat later */
	ROLL_ENOTREADY = -12, /* no complete view yet, or it is too old */
	ROLL_ESTALE = -13,    /* superseded: open again */
	ROLL_EDENIED = -14,   /* permission, credentials */
	ROLL_EPROTO = -15,    /* a peer broke the protocol */
	ROLL_ECANCELED = -16,
	ROLL_STATUS_LAST = ROLL_ECANCELED
};

#define ROLL_MUST_CHECK __attribute__((warn_unused_result))
#define ROLL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Details of one error. `where` names the place (file:line, object, field); may be empty. */
struct roll_err {
	enum roll_status code;
	char where[192];
	char text[320];
};

/* A short lower-case English text for every code; never NULL. */
const char *roll_status_text(enum roll_status status);

/*
 * Fill err (may be NULL) and return code. Text that does not fit is cut at a character border and
 * ends in "...". where may be NULL. Neither may contain foreign bytes that were not escaped.
 */
enum roll_status roll_err_set(struct roll_err *err, enum roll_status code, const char *where,
			      const char *fmt, ...) ROLL_PRINTF(4, 5);

/* As above, with the text of errno_value appended (": No space left on device"). */
enum roll_status roll_err_errno(struct roll_err *err, enum roll_status code, int errno_value,
				const char *where, const char *fmt, ...) ROLL_PRINTF(5, 6);

#endif
