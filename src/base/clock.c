/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now); /* cannot fail: both clocks exist on every Linux */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_monotonic_ms(void *ctx)
{
	(void)ctx;
	return read_ms(CLOCK_MONOTONIC);
}

static int64_t system_wall_ms(void *ctx)
{
	(void)ctx;
	return read_ms(CLOCK_REALTIME);
}

const struct roll_clock roll_clock_system = {system_monotonic_ms, system_wall_ms, NULL};

#define DAY_S INT64_C(86400)
#define TIME_MIN_S INT64_C(-62167219200) /* 0000-01-01T00:00:00Z */
#define TIME_MAX_S INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

/*
 * Days since 1970-01-01 in the proleptic Gregorian calendar, for years from 0. Years are counted
 * from March, so that the leap day is the last of its year and month lengths follow a line.
 */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1 + 400; /* 400 years later, so never negative */
	int64_t m = month > 2 ? month - 3 : month + 9;
	int64_t days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1;

	return days - (month > 2 ? 719468 : 719468 + 146097);
}

static int64_t month_days(int64_t year, int64_t month)
{
	static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && is_leap);
}

/* Cut exactly n digits off *s; false if they are not there or the value is out of range. */
static bool cut_digits(struct roll_str *s, size_t n, uint32_t min, uint32_t max, int64_t *out)
{
	uint32_t value;

	if (s->n < n || roll_str_u32(roll_str_n(s->p, n), max, &value) || value < min)
		return false;
	*s = roll_str_n(s->p + n, s->n - n);
	*out = value;
	return true;
}

static bool cut_char(struct roll_str *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = roll_str_n(s->p + 1, s->n - 1);
	return true;
}

/* "Z" or "+hh:mm" or "-hh:mm", to the end of s. */
static bool cut_offset(struct roll_str *s, int64_t *offset_s)
{
	int64_t sign = 1, hours, minutes;

	*offset_s = 0;
	if (cut_char(s, 'Z'))
		return s->n == 0;
	if (cut_char(s, '-'))
		sign = -1;
	else if (!cut_char(s, '+'))
		return false;
	if (!cut_digits(s, 2, 0, 23, &hours) || !cut_char(s, ':') ||
	    !cut_digits(s, 2, 0, 59, &minutes))
		return false;
	*offset_s = sign * (hours * 3600 + minutes * 60);
	return s->n == 0;
}

enum roll_status roll_time_parse(struct roll_str text, int64_t *out_s)
{
	int64_t year, month, day, hour, minute, second, offset_s;
	struct roll_str s = text;

	if (!cut_digits(&s, 4, 0, 9999, &year) || !cut_char(&s, '-') ||
	    !cut_digits(&s, 2, 1, 12, &month) || !cut_char(&s, '-') ||
	    !cut_digits(&s, 2, 1, 31, &day) || !cut_char(&s, 'T') ||
	    !cut_digits(&s, 2, 0, 23, &hour) || !cut_char(&s, ':') ||
	    !cut_digits(&s, 2, 0, 59, &minute) || !cut_char(&s, ':') ||
	    !cut_digits(&s, 2, 0, 59, &second))
		return ROLL_EINVAL;
	if (day > month_days(year, month))
		return ROLL_EINVAL;
	if (cut_char(&s, '.')) {
		size_t before = s.n;

		while (s.n && roll_is_digit((unsigned char)s.p[0]))
			s = roll_str_n(s.p + 1, s.n - 1);
		if (s.n == before)
			return ROLL_EINVAL;
	}
	if (!cut_offset(&s, &offset_s))
		return ROLL_EINVAL;
	*out_s = days_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - offset_s;
	return ROLL_OK;
}

static char *put_digits(char *out, int64_t value, size_t n)
{
	for (size_t i = n; i > 0; i--) {
		out[i - 1] = (char)('0' + value % 10);
		value /= 10;
	}
	return out + n;
}

const char *roll_time_print(int64_t seconds, char out[ROLL_TIME_SIZE])
{
	int64_t days, rest, year, month = 1;
	char *p = out;

	if (seconds < TIME_MIN_S)
		seconds = TIME_MIN_S;
	if (seconds > TIME_MAX_S)
		seconds = TIME_MAX_S;
	days = (seconds - TIME_MIN_S) / DAY_S; /* since the first of the year 0 */
	rest = (seconds - TIME_MIN_S) % DAY_S;
	/* A guess by the mean length of a year is never more than one year early. */
	year = days * 400 / 146097;
	while (days_of(year + 1, 1, 1) - days_of(0, 1, 1) <= days)
		year++;
	while (days_of(year, 1, 1) - days_of(0, 1, 1) > days)
		year--;
	days -= days_of(year, 1, 1) - days_of(0, 1, 1);
	while (days >= month_days(year, month))
		days -= month_days(year, month++);

	p = put_digits(p, year, 4);
	*p++ = '-';
	p = put_digits(p, month, 2);
	*p++ = '-';
	p = put_digits(p, days + 1, 2);
	*p++ = 'T';
	p = put_digits(p, rest / 3600, 2);
	*p++ = ':';
	p = put_digits(p, rest / 60 % 60, 2);
	*p++ = ':';
	p = put_digits(p, rest % 60, 2);
	*p++ = 'Z';
	*p = '\0';
	return out;
}

const char *roll_time_print_micro(int64_t wall_ms, char out[ROLL_TIME_MICRO_SIZE])
{
	int64_t seconds = wall_ms / 1000, rest = wall_ms % 1000;
	char *p = out + ROLL_TIME_SIZE - 2; /* its "Z" */

	/* The fraction counts upwards before 1970 too. */
	if (rest < 0) {
		rest += 1000;
		seconds--;
	}
	roll_time_print(seconds, out);
	*p++ = '.';
	p = put_digits(p, rest * 1000, 6);
	*p++ = 'Z';
	*p = '\0';
	return out;
}

/* Units from large to small, the order in which they may follow each other. */
static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {{"d", DAY_S * 1000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define UNIT_COUNT (sizeof units / sizeof *units)

enum roll_status roll_duration_parse(struct roll_str text, int64_t *out_ms)
{
	enum roll_status status = ROLL_OK;
	struct roll_str s = text;
	int64_t total = 0, part;
	size_t at = 0;

	if (s.n == 0)
		return ROLL_EINVAL;
	while (s.n) {
		size_t digits = 0, letters = 0;
		uint64_t count = 0;

		while (digits < s.n && roll_is_digit((unsigned char)s.p[digits]))
			digits++;
		while (digits + letters < s.n &&
		       roll_is_alpha((unsigned char)s.p[digits + letters]))
			letters++;
		while (at < UNIT_COUNT &&
		       !roll_str_eq_c(roll_str_n(s.p + digits, letters), units[at].name))
			at++;
		if (digits == 0 || at == UNIT_COUNT)
			return ROLL_EINVAL;
		if (roll_str_u64(roll_str_n(s.p, digits), INT64_MAX, &count) ||
		    __builtin_mul_overflow((int64_t)count, units[at].ms, &part) ||
		    __builtin_add_overflow(total, part, &total))
			status = ROLL_ELIMIT;
		at++;
		s = roll_str_n(s.p + digits + letters, s.n - digits - letters);
	}
	if (!status)
		*out_ms = total;
	return status;
}

/* splitmix64: one addition and a mix; quality is ample for spreading retries. */
static uint64_t next_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

int64_t roll_backoff_ms(unsigned *attempt, int64_t base_ms, int64_t cap_ms, uint64_t *seed)
{
	int64_t window = base_ms > 0 ? base_ms : 1;

	for (unsigned i = 0; i < *attempt && window < cap_ms; i++) {
		if (__builtin_mul_overflow(window, 2, &window))
			window = INT64_MAX;
	}
	if (window > cap_ms)
		window = cap_ms > 0 ? cap_ms : 1;
	if (*attempt < 64)
		++*attempt;
	/* Never 0: a retry at once is what a back-off is there to prevent. */
	return 1 + (int64_t)(next_random(seed) % (uint64_t)window);
}
