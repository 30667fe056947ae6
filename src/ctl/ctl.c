/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

void roll_ctl_complain(const struct roll_ctl *ctl, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "rollcall %s: ", ctl->verb);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

int roll_ctl_unreadable(const struct roll_ctl *ctl, enum roll_status status)
{
	roll_ctl_complain(ctl, "the view in %s could not be read to its end: %s%s", ctl->view_dir,
			  roll_status_text(status),
			  status == ROLL_ECORRUPT
				  ? "; stop rollcall-sync, remove the folder that `current` points "
				    "to, and start it again: it builds a new view"
				  : "");
	return ROLL_EXIT_SOURCE;
}

/* What somebody new to the program most likely got wrong. */
static void explain_no_view(const struct roll_ctl *ctl, const struct roll_err *err)
{
	char current[4200];
	struct stat st;

	if (stat(ctl->view_dir, &st) != 0) {
		roll_ctl_complain(ctl,
				  "%s: %s; --view must name the directory that rollcall-sync "
				  "was given as --view",
				  ctl->view_dir, strerror(errno));
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		roll_ctl_complain(ctl,
				  "%s is not a directory; --view must name the directory that "
				  "rollcall-sync was given as --view",
				  ctl->view_dir);
		return;
	}
	snprintf(current, sizeof current, "%s/current", ctl->view_dir);
	if (lstat(current, &st) != 0 && errno == ENOENT) {
		roll_ctl_complain(ctl,
				  "there is no view in %s yet: rollcall-sync has not read its "
				  "source to the end (is it running, with this --view?)",
				  ctl->view_dir);
		return;
	}
	if (err->code == ROLL_ENOTREADY) {
		roll_ctl_complain(ctl,
				  "the view in %s is not complete yet: rollcall-sync has not "
				  "read its source to the end (see `rollcall status`)",
				  ctl->view_dir);
		return;
	}
	roll_ctl_complain(ctl, "the view in %s cannot be read: %s%s%s", ctl->view_dir,
			  roll_status_text(err->code), err->text[0] ? ": " : "", err->text);
}

bool roll_ctl_open(struct roll_ctl *ctl, bool complete_only, struct roll_ctl_view *out,
		   int *exit_code)
{
	struct roll_err err = {0};
	enum roll_status status;

	*out = (struct roll_ctl_view){0};
	status = roll_view_new(ctl->view_dir, &out->view, &err);
	if (status == ROLL_OK)
		status = roll_snap_begin(out->view, complete_only, &out->snap, &err);
	if (status == ROLL_OK)
		return true;
	err.code = status;
	explain_no_view(ctl, &err);
	roll_ctl_close(out);
	*exit_code = ROLL_EXIT_SOURCE;
	return false;
}

void roll_ctl_close(struct roll_ctl_view *view)
{
	if (view->snap)
		roll_snap_end(view->snap);
	if (view->view)
		roll_view_free(view->view);
	*view = (struct roll_ctl_view){0};
}

bool roll_ctl_name(const struct roll_ctl *ctl, const char *text, struct roll_name *out)
{
	struct roll_err err = {0};
	char shown[300];

	if (roll_name_parse(roll_str_c(text), out, &err) == ROLL_OK)
		return true;
	roll_ctl_complain(ctl, "\"%s\" is not a domain name: %s",
			  roll_str_show(roll_str_c(text), shown, sizeof shown), err.text);
	return false;
}

const char *roll_ctl_since(const struct roll_ctl *ctl, int64_t seconds, char text[ROLL_SINCE_SIZE])
{
	char when[ROLL_TIME_SIZE], age[ROLL_AGE_SIZE];

	if (seconds == INT64_MAX)
		snprintf(text, ROLL_SINCE_SIZE, "without creation time");
	else
		snprintf(text, ROLL_SINCE_SIZE, "%s, %s ago", roll_time_print(seconds, when),
			 roll_words_age(ctl->now_s - seconds, age));
	return text;
}

void roll_ctl_out_name(struct roll_out *out, const struct roll_name *name)
{
	char text[ROLL_NAME_TEXT_SIZE];

	roll_out_text(out, "%s", roll_name_show(name, text));
}

void roll_ctl_json_name(struct roll_out *out, const char *key, const struct roll_name *name)
{
	struct roll_buf text;

	roll_buf_init(&text, ROLL_NAME_TEXT_SIZE);
	roll_name_print(name, ROLL_DOT_NONE, &text);
	roll_out_str(out, key, roll_buf_str(&text));
	roll_buf_fini(&text);
}
