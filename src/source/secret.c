/* SPDX-License-Identifier: Apache-2.0 */
#include "source/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void roll_secret_fini(struct roll_buf *buf)
{
	if (buf->p)
		explicit_bzero(buf->p, buf->room);
	roll_buf_fini(buf);
}

enum roll_status roll_secret_set(struct roll_buf *buf, struct roll_str text)
{
	roll_secret_fini(buf);
	roll_buf_init(buf, ROLL_SECRET_LIMIT_BYTES);
	roll_buf_add_str(buf, text);
	return buf->status;
}

enum roll_status roll_secret_read(struct roll_buf *buf, const char *path, struct roll_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum roll_status status = ROLL_OK;
	struct stat st;
	size_t n = 0;
	char *p;

	roll_secret_fini(buf);
	roll_buf_init(buf, ROLL_SECRET_LIMIT_BYTES);
	if (fd < 0 || fstat(fd, &st)) {
		status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO, errno, path,
					"cannot be opened");
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		status = roll_err_set(err, ROLL_EINVAL, path, "is not a file");
		goto out;
	}
	/* One more than it should have: a file that grew meanwhile is noticed. */
	p = st.st_size < (off_t)ROLL_SECRET_LIMIT_BYTES
		    ? roll_buf_extend(buf, (size_t)st.st_size + 1)
		    : NULL;
	if (!p) {
		status = roll_err_set(err, ROLL_ELIMIT, path, "is too large");
		goto out;
	}
	for (;;) {
		ssize_t got = read(fd, p + n, (size_t)st.st_size + 1 - n);

		if (got < 0) {
			status = roll_err_errno(err, ROLL_EIO, errno, path, "cannot be read");
			goto out;
		}
		n += (size_t)got;
		if (got == 0)
			break;
		if (n > (size_t)st.st_size) {
			status = roll_err_set(err, ROLL_EAGAIN, path, "changes while it is read");
			goto out;
		}
	}
	roll_buf_truncate(buf, n);
out:
	if (fd >= 0)
		close(fd);
	if (status)
		roll_secret_fini(buf);
	return status;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_of(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

enum roll_status roll_secret_encode(struct roll_buf *buf, struct roll_str bytes)
{
	size_t n = 0;
	char *p;

	roll_secret_fini(buf);
	roll_buf_init(buf, ROLL_SECRET_LIMIT_BYTES * 2);
	p = roll_buf_extend(buf, (bytes.n + 2) / 3 * 4);
	if (!p)
		return buf->status;
	for (size_t i = 0; i < bytes.n; i += 3) {
		const unsigned char *from = (const unsigned char *)bytes.p + i;
		size_t left = bytes.n - i;
		uint32_t bits = (uint32_t)from[0] << 16;

		bits |= left > 1 ? (uint32_t)from[1] << 8 : 0;
		bits |= left > 2 ? (uint32_t)from[2] : 0;
		p[n++] = digits[bits >> 18];
		p[n++] = digits[bits >> 12 & 63];
		p[n++] = left > 1 ? digits[bits >> 6 & 63] : '=';
		p[n++] = left > 2 ? digits[bits & 63] : '=';
	}
	return ROLL_OK;
}

enum roll_status roll_secret_decode(struct roll_buf *buf, struct roll_str base64)
{
	size_t count = 0, pads = 0, n = 0;
	uint32_t bits = 0;
	char *p;

	roll_secret_fini(buf);
	roll_buf_init(buf, ROLL_SECRET_LIMIT_BYTES);
	p = roll_buf_extend(buf, base64.n / 4 * 3 + 3);
	if (!p)
		return buf->status;
	for (size_t i = 0; i < base64.n; i++) {
		int digit = digit_of(base64.p[i]);

		if (base64.p[i] == '\n' || base64.p[i] == '\r')
			continue;
		if (base64.p[i] == '=') {
			pads++;
			continue;
		}
		if (digit < 0 || pads)
			goto bad;
		bits = bits << 6 | (uint32_t)digit;
		count++;
		if (count % 4 == 0) {
			p[n++] = (char)(bits >> 16);
			p[n++] = (char)(bits >> 8);
			p[n++] = (char)bits;
			bits = 0;
		}
	}
	if (count % 4 == 1 || pads > 2 || (count + pads) % 4)
		goto bad;
	if (count % 4 == 3) {
		p[n++] = (char)(bits >> 10);
		p[n++] = (char)(bits >> 2);
		if (bits & 3)
			goto bad;
	} else if (count % 4 == 2) {
		p[n++] = (char)(bits >> 4);
		if (bits & 15)
			goto bad;
	}
	roll_buf_truncate(buf, n);
	return ROLL_OK;
bad:
	roll_secret_fini(buf);
	return ROLL_EINVAL;
}

void roll_secret_wipe_json(json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_STRING:
		/* jansson gives a const pointer to memory of its own that can be written. */
		explicit_bzero((void *)(uintptr_t)json_string_value(value),
			       json_string_length(value));
		break;
	case JSON_OBJECT:
		json_object_foreach (value, key, member)
			roll_secret_wipe_json(member);
		break;
	case JSON_ARRAY:
		json_array_foreach (value, i, member)
			roll_secret_wipe_json(member);
		break;
	default:
		break;
	}
}
