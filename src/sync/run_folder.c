/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/run.h"

/* rollcall-sync --manifests. */

static enum roll_status open_folder(struct roll_run *run, void **state, struct roll_err *err)
{
	struct roll_folder *folder = NULL;
	enum roll_status status;

	status = roll_folder_new(run->loop, run->options.manifests, &folder, err);
	*state = folder;
	return status;
}

static enum roll_status start_folder(struct roll_run *run, void *state, struct roll_err *err)
{
	(void)err;
	roll_folder_set_sink(state, roll_engine_sink(run->engine));
	roll_folder_start(state);
	return ROLL_OK;
}

static enum roll_status list_folder(struct roll_run *run, void *state, struct roll_err *err)
{
	roll_folder_set_sink(state, roll_engine_sink(run->engine));
	return roll_folder_list(state, err);
}

static void read_again(struct roll_run *run, void *state)
{
	(void)run;
	roll_folder_again(state);
}

static void on_error(void *ctx, const struct roll_folder_file_error *error)
{
	char path[300], text[600];

	(void)ctx;
	roll_run_tell(roll_str_show(roll_str_c(error->path), path, sizeof path), "",
		      roll_reason_text(ROLL_REASON_STALE_FILE),
		      roll_str_show(roll_str_c(error->text), text, sizeof text));
}

static size_t tell_errors(struct roll_run *run, void *state)
{
	(void)run;
	return roll_folder_errors(state, on_error, NULL);
}

static size_t count_errors(void *state)
{
	return roll_folder_errors(state, NULL, NULL);
}

static void close_folder(void *state)
{
	roll_folder_free(state);
}

const struct roll_run_source roll_run_folder = {
	.open = open_folder,
	.start = start_folder,
	.once = list_folder,
	.again = read_again,
	.findings = tell_errors,
	.close = close_folder,
	.unreadable = count_errors,
};
