/* SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"

#include <string.h>

struct scanner {
	const char *start;
	char *p;
	const char *end;
	const char *wrong; /* what is wrong at p; NULL while all is well */
	bool is_limit;
};

static void fail(struct scanner *s, const char *wrong)
{
	if (!s->wrong)
		s->wrong = wrong;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct scanner *s)
{
	while (s->p < s->end && is_blank(*s->p))
		s->p++;
}

/* Step over c, with blanks before it, if it is next. */
static bool take(struct scanner *s, char c)
{
	if (s->p < s->end && is_blank(*s->p))
		skip_blanks(s);
	if (s->wrong || s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static void expect(struct scanner *s, char c, const char *wrong)
{
	if (!take(s, c))
		fail(s, wrong);
}

/* Four hex digits at p. */
static bool read_hex4(const char *p, const char *end, unsigned *out)
{
	unsigned value = 0;

	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		unsigned char c = roll_lower((unsigned char)p[i]);

		if (roll_is_digit(c))
			value = value << 4 | (c - (unsigned)'0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (c - (unsigned)'a' + 10);
		else
			return false;
	}
	*out = value;
	return true;
}

static char *put_utf8(char *to, unsigned code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*to++ = (char)(0xe0 | code >> 12);
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	} else {
		*to++ = (char)(0xf0 | code >> 18);
		*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	}
	return to;
}

/* The rest of \uXXXX or of a surrogate pair (RFC 8259, 7); s->p is after the 'u'. */
static char *decode_unicode(struct scanner *s, char *to)
{
	unsigned code, low;

	if (!read_hex4(s->p, s->end, &code)) {
		fail(s, "\\u needs four hex digits");
		return to;
	}
	s->p += 4;
	if (code >= 0xd800 && code < 0xe000) {
		if (code >= 0xdc00 || s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u' ||
		    !read_hex4(s->p + 2, s->end, &low) || low < 0xdc00 || low > 0xdfff) {
			fail(s, "half a surrogate pair");
			return to;
		}
		s->p += 6;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	return put_utf8(to, code);
}

/* One escape; s->p is at its backslash. */
static char *decode_escape(struct scanner *s, char *to)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (s->end - s->p < 2) {
		fail(s, "string without end");
		return to;
	}
	if (s->p[1] == 'u') {
		s->p += 2;
		return decode_unicode(s, to);
	}
	found = memchr(names, s->p[1], sizeof names - 1);
	if (!found) {
		fail(s, "unknown escape");
		return to;
	}
	s->p += 2;
	*to++ = bytes[found - names];
	return to;
}

static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Some byte of eight is below c (c at most 128): its high bit alone is borrowed. */
static bool has_below(uint64_t eight, unsigned c)
{
	return ((eight - EACH_BYTE(c)) & ~eight & EACH_BYTE(0x80)) != 0;
}

/* The first byte from p on that is not plain; most of a request is strings, so eight at a time. */
static char *skip_plain(char *p, const char *end)
{
	uint64_t eight;

	for (; end - p >= 8; p += 8) {
		memcpy(&eight, p, sizeof eight);
		if (has_below(eight, 0x20) || has_below(eight ^ EACH_BYTE('"'), 1) ||
		    has_below(eight ^ EACH_BYTE('\\'), 1))
			break;
	}
	while (p < end && is_plain(*p))
		p++;
	return p;
}

/* The rest of a string that has an escape at s->p; what was before it stays where it is. */
static char *decode_rest(struct scanner *s)
{
	char *to = s->p;

	while (s->p < s->end && *s->p != '"' && !s->wrong) {
		if (*s->p == '\\')
			to = decode_escape(s, to);
		else if (is_plain(*s->p))
			*to++ = *s->p++;
		else
			fail(s, "control character in a string");
	}
	return to;
}

static struct roll_str read_string(struct scanner *s)
{
	char *from, *to;

	expect(s, '"', "expected a string");
	if (s->wrong)
		return roll_str_n(NULL, 0);
	from = s->p;
	to = s->p = skip_plain(from, s->end);
	if (to < s->end && *to != '"')
		to = decode_rest(s);
	if (s->p == s->end)
		fail(s, "string without end");
	else
		s->p++;
	return roll_str_n(from, (size_t)(to - from));
}

static size_t skip_digits(struct scanner *s)
{
	char *from = s->p;

	while (s->p < s->end && roll_is_digit((unsigned char)*s->p))
		s->p++;
	return (size_t)(s->p - from);
}

/* Any JSON number; *out is set and true returned if it is an integer that fits. */
static bool read_number(struct scanner *s, int64_t *out)
{
	bool is_negative = take(s, '-'), is_whole = true;
	struct roll_str digits = {s->p, 0};
	uint64_t value;

	digits.n = skip_digits(s);
	if (digits.n == 0 || (digits.n > 1 && digits.p[0] == '0'))
		fail(s, "expected a value");
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		is_whole = false;
		if (skip_digits(s) == 0)
			fail(s, "expected a digit");
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		is_whole = false;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (skip_digits(s) == 0)
			fail(s, "expected a digit");
	}
	if (s->wrong || !is_whole || roll_str_u64(digits, INT64_MAX, &value))
		return false;
	*out = is_negative ? -(int64_t)value : (int64_t)value;
	return true;
}

static bool take_word(struct scanner *s, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
		return false;
	s->p += n;
	return true;
}

static void skip_value(struct scanner *s, unsigned depth);

/* The members of an object or array, after its opening bracket. */
static void skip_members(struct scanner *s, unsigned depth, char close, bool has_keys)
{
	if (depth == ROLL_REQUEST_DEPTH_MAX) {
		s->is_limit = true;
		fail(s, "nested too deeply");
	}
	if (take(s, close))
		return;
	do {
		if (has_keys) {
			read_string(s);
			expect(s, ':', "expected ':'");
		}
		if (s->wrong)
			return;
		skip_value(s, depth + 1);
	} while (take(s, ','));
	expect(s, close, "expected ',' or the end of an object or array");
}

static void skip_value(struct scanner *s, unsigned depth)
{
	int64_t number;

	skip_blanks(s);
	if (s->wrong || s->p == s->end) {
		fail(s, "expected a value");
	} else if (*s->p == '"') {
		read_string(s);
	} else if (*s->p == '{' || *s->p == '[') {
		bool is_object = *s->p++ == '{';

		skip_members(s, depth, is_object ? '}' : ']', is_object);
	} else if (!take_word(s, "true") && !take_word(s, "false") && !take_word(s, "null")) {
		read_number(s, &number);
	}
}

static void read_param(struct scanner *s, struct roll_param *param)
{
	*param = (struct roll_param){.name = read_string(s), .kind = ROLL_PARAM_OTHER};
	expect(s, ':', "expected ':'");
	skip_blanks(s);
	if (s->wrong || s->p == s->end) {
		fail(s, "expected a value");
	} else if (*s->p == '"') {
		param->text = read_string(s);
		param->kind = ROLL_PARAM_STRING;
	} else if (*s->p == '-' || roll_is_digit((unsigned char)*s->p)) {
		if (read_number(s, &param->number))
			param->kind = ROLL_PARAM_INTEGER;
	} else {
		skip_value(s, 1);
	}
}

static void read_params(struct scanner *s, struct roll_request *request)
{
	request->param_count = 0;
	expect(s, '{', "parameters must be an object");
	if (take(s, '}'))
		return;
	do {
		if (request->param_count == ROLL_REQUEST_PARAMS_MAX) {
			s->is_limit = true;
			fail(s, "too many parameters");
		}
		if (s->wrong)
			return;
		read_param(s, &request->params[request->param_count++]);
	} while (take(s, ','));
	expect(s, '}', "expected ',' or the end of an object or array");
}

static void read_request(struct scanner *s, struct roll_request *request)
{
	expect(s, '{', "expected an object");
	if (take(s, '}'))
		return;
	do {
		struct roll_str key = read_string(s);

		expect(s, ':', "expected ':'");
		if (s->wrong)
			return;
		if (roll_str_eq_c(key, "method"))
			request->method = read_string(s);
		else if (roll_str_eq_c(key, "parameters"))
			read_params(s, request);
		else
			skip_value(s, 1);
	} while (take(s, ','));
	expect(s, '}', "expected ',' or the end of an object or array");
}

enum roll_status roll_request_parse(char *text, size_t n, struct roll_request *out,
				    struct roll_err *err)
{
	struct scanner s = {.start = text, .p = text, .end = text + n};

	out->method = roll_str_n(NULL, 0);
	out->param_count = 0;
	read_request(&s, out);
	skip_blanks(&s);
	if (!s.wrong && s.p != s.end)
		fail(&s, "more than one value");
	if (s.wrong)
		return roll_err_set(err, s.is_limit ? ROLL_ELIMIT : ROLL_EINVAL, NULL,
				    "%s at byte %zu", s.wrong, (size_t)(s.p - s.start));
	return ROLL_OK;
}

const struct roll_param *roll_request_param(const struct roll_request *request, const char *name,
					    enum roll_param_kind kind)
{
	const struct roll_str wanted = roll_str_c(name);

	for (size_t i = request->param_count; i-- > 0;) {
		const struct roll_param *param = &request->params[i];

		if (param->name.n == wanted.n && roll_str_eq(param->name, wanted))
			return param->kind == kind ? param : NULL;
	}
	return NULL;
}
