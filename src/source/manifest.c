/* SPDX-License-Identifier: Apache-2.0 */
#include "source/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "source/yaml.h"

#define PIECE_BYTES ((size_t)256 << 10)

/* How many values a JSON text holds, near enough, told from its text alone. */
struct nodes {
	size_t count;
	bool in_string, in_escape;
};

struct roll_manifest {
	int fd;
	struct stat stat;
	char *shown;
	bool is_json;
	bool was_stopped;
	bool has_text; /* anything but blanks was read */
	size_t item;   /* the next of a JSON file's items */
	struct roll_json_items *items;
	char *piece;
	struct nodes nodes; /* of the text since the last item */
	/* For the call at hand. */
	roll_manifest_on_object on_object;
	void *ctx;
	struct roll_err *err;
};

static bool ends_in(struct roll_str s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.n > n && memcmp(s.p + s.n - n, suffix, n) == 0;
}

bool roll_manifest_is_name(struct roll_str name)
{
	if (!name.n || name.p[0] == '.')
		return false;
	return ends_in(name, ".yaml") || ends_in(name, ".yml") || ends_in(name, ".json");
}

static enum roll_status from_errno(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return ROLL_ENOENT;
	case EACCES:
	case EPERM:
		return ROLL_EDENIED;
	case ENOMEM:
		return ROLL_ENOMEM;
	default:
		return ROLL_EIO;
	}
}

enum roll_status roll_manifest_open(int dir_fd, const char *path, const char *shown,
				    struct roll_manifest **out, struct roll_err *err)
{
	struct roll_manifest *manifest = calloc(1, sizeof *manifest);
	enum roll_status status = ROLL_OK;
	int error;

	if (!manifest)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	/* A named pipe would block for ever. */
	manifest->fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	error = errno;
	manifest->shown = strdup(shown);
	manifest->is_json = ends_in(roll_str_c(shown), ".json");
	if (!manifest->shown)
		status = roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	else if (manifest->fd < 0)
		status = roll_err_errno(err, from_errno(error), error, NULL, "cannot be opened");
	else if (fstat(manifest->fd, &manifest->stat))
		status = roll_err_errno(err, ROLL_EIO, errno, NULL, "cannot be read");
	else if (!S_ISREG(manifest->stat.st_mode))
		status = roll_err_set(err, ROLL_EINVAL, NULL, "is not a regular file");
	else if (!manifest->is_json && (uint64_t)manifest->stat.st_size > ROLL_MANIFEST_YAML_BYTES)
		status = roll_err_set(err, ROLL_ELIMIT, NULL,
				      "is larger than %zu MiB, the most for a YAML file; use "
				      "several files, or a List in a .json file",
				      ROLL_MANIFEST_YAML_BYTES >> 20);
	if (status) {
		roll_manifest_close(manifest);
		return status;
	}
	*out = manifest;
	return ROLL_OK;
}

void roll_manifest_close(struct roll_manifest *manifest)
{
	if (!manifest)
		return;
	if (manifest->fd >= 0)
		close(manifest->fd);
	roll_json_items_free(manifest->items);
	free(manifest->piece);
	free(manifest->shown);
	free(manifest);
}

const struct stat *roll_manifest_stat(const struct roll_manifest *manifest)
{
	return &manifest->stat;
}

bool roll_manifest_was_stopped(const struct roll_manifest *manifest)
{
	return manifest->was_stopped;
}

static bool has_changed(const struct roll_manifest *manifest)
{
	const struct stat *was = &manifest->stat;
	struct stat now;

	return fstat(manifest->fd, &now) || now.st_size != was->st_size ||
	       now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

/* --- objects --- */

static bool is_list(const json_t *object)
{
	struct roll_str kind = roll_json_str(object, "kind");

	return ends_in(kind, "List") || roll_str_eq_c(kind, "List");
}

static enum roll_status hand_out_one(struct roll_manifest *manifest, json_t *object,
				     const char *where)
{
	enum roll_status status = manifest->on_object(manifest->ctx, object, roll_str_c(where));

	manifest->was_stopped = status != ROLL_OK;
	return status;
}

/*
 * An object, or all in a List (of any group and kind), which has items where objects have a spec.
 * An item may be a List again: as deep as the parsers let anything nest.
 */
static enum roll_status hand_out(struct roll_manifest *manifest, json_t *object, const char *where)
{
	json_t *items = is_list(object) ? json_object_get(object, "items") : NULL;
	enum roll_status status = ROLL_OK;
	char place[400];
	json_t *item;
	size_t i;

	if (!items)
		return hand_out_one(manifest, object, where);
	if (!json_is_array(items) && !json_is_null(items))
		return roll_err_set(manifest->err, ROLL_EINVAL, NULL,
				    "the items of a List are no list");
	json_array_foreach (items, i, item) {
		snprintf(place, sizeof place, "%s item %zu", where, i);
		status = hand_out(manifest, item, place);
		if (status)
			break;
	}
	return status;
}

/* --- YAML --- */

static enum roll_status on_document(void *ctx, json_t *document, size_t line)
{
	struct roll_manifest *manifest = ctx;
	char where[320];

	snprintf(where, sizeof where, "%s:%zu", manifest->shown, line);
	return hand_out(manifest, document, where);
}

/* Some editors begin a file with a byte order mark; it is no part of the text (RFC 8259, 8.1). */
static struct roll_str without_mark(struct roll_str text)
{
	static const char mark[] = "\xef\xbb\xbf";

	return roll_str_starts(text, mark)
		       ? roll_str_n(text.p + strlen(mark), text.n - strlen(mark))
		       : text;
}

static bool is_blank(struct roll_str text)
{
	return roll_str_trim(text).n == 0;
}

static enum roll_status read_fully(struct roll_manifest *manifest, struct roll_buf *text)
{
	for (;;) {
		size_t n = text->n;
		char *room = roll_buf_extend(text, PIECE_BYTES);
		ssize_t got;

		if (!room)
			return roll_err_set(manifest->err, text->status, NULL, "%s",
					    text->status == ROLL_ELIMIT ? "grew beyond what is read"
									: "out of memory");
		got = read(manifest->fd, room, PIECE_BYTES);
		roll_buf_truncate(text, n + (got > 0 ? (size_t)got : 0));
		if (got == 0)
			return ROLL_OK;
		if (got < 0)
			return roll_err_errno(manifest->err, ROLL_EIO, errno, NULL,
					      "cannot be read");
	}
}

static enum roll_status read_yaml(struct roll_manifest *manifest)
{
	enum roll_status status;
	struct roll_buf text;

	roll_buf_init(&text, ROLL_MANIFEST_YAML_BYTES + 2 * PIECE_BYTES);
	status = read_fully(manifest, &text);
	if (!status && is_blank(without_mark(roll_buf_str(&text))))
		status = roll_err_set(manifest->err, ROLL_EINVAL, NULL, "is empty");
	if (!status)
		status = roll_yaml_read(without_mark(roll_buf_str(&text)), ROLL_MANIFEST_YAML_NODES,
					on_document, manifest, manifest->err);
	roll_buf_fini(&text);
	return status;
}

/* --- JSON --- */

static void count_nodes(struct nodes *nodes, struct roll_str text)
{
	size_t i;

	for (i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (nodes->in_escape)
			nodes->in_escape = false;
		else if (c == '"')
			nodes->in_string = !nodes->in_string;
		else if (nodes->in_string)
			nodes->in_escape = c == '\\';
		else
			nodes->count += c == ',' || c == '{' || c == '[';
	}
}

static enum roll_status too_many(struct roll_manifest *manifest)
{
	return roll_err_set(manifest->err, ROLL_ELIMIT, NULL,
			    "is too large: an object of more than %u values",
			    ROLL_MANIFEST_JSON_NODES);
}

static enum roll_status on_item(void *ctx, struct roll_str text)
{
	struct roll_manifest *manifest = ctx;
	struct nodes nodes = {0, false, false};
	enum roll_status status;
	json_t *item = NULL;
	struct roll_err at;
	char where[400];

	count_nodes(&nodes, text);
	if (nodes.count > ROLL_MANIFEST_JSON_NODES)
		return too_many(manifest);
	snprintf(where, sizeof where, "%s item %zu", manifest->shown, manifest->item);
	status = roll_json_parse(text, &item, &at);
	if (status)
		return roll_err_set(manifest->err, status, NULL, "item %zu: %s%s%s", manifest->item,
				    at.where, at.where[0] ? ": " : "", at.text);
	manifest->item++;
	status = hand_out(manifest, item, where);
	json_decref(item);
	return status;
}

static enum roll_status end_json(struct roll_manifest *manifest)
{
	enum roll_status status;
	json_t *skeleton = NULL;
	bool had_items = false;

	if (!manifest->has_text)
		return roll_err_set(manifest->err, ROLL_EINVAL, NULL, "is empty");
	status = roll_json_items_end(manifest->items, &skeleton, &had_items, manifest->err);
	if (!status && !had_items)
		status = hand_out(manifest, skeleton, manifest->shown);
	else if (!status && !is_list(skeleton))
		status = roll_err_set(manifest->err, ROLL_EINVAL, "items",
				      "only a List has these; expected \"kind\": \"List\"");
	json_decref(skeleton);
	return status;
}

static enum roll_status step_json(struct roll_manifest *manifest, bool *more)
{
	size_t before = manifest->item;
	enum roll_status status;
	struct roll_str piece;
	ssize_t got;

	if (!manifest->items) {
		manifest->items = roll_json_items_new(ROLL_MANIFEST_ITEM_BYTES,
						      ROLL_MANIFEST_ITEM_BYTES, on_item, manifest);
		manifest->piece = malloc(PIECE_BYTES);
		if (!manifest->items || !manifest->piece)
			return roll_err_set(manifest->err, ROLL_ENOMEM, NULL, "out of memory");
	}
	got = read(manifest->fd, manifest->piece, PIECE_BYTES);
	if (got < 0)
		return roll_err_errno(manifest->err, ROLL_EIO, errno, NULL, "cannot be read");
	*more = got > 0;
	if (got == 0)
		return end_json(manifest);
	piece = roll_str_n(manifest->piece, (size_t)got);
	if (!manifest->has_text)
		piece = without_mark(piece);
	manifest->has_text = manifest->has_text || !is_blank(piece);
	status = roll_json_items_feed(manifest->items, piece, manifest->err);
	/* What no item has taken is kept for the end. */
	count_nodes(&manifest->nodes, piece);
	if (manifest->item != before)
		manifest->nodes.count = 0;
	if (!status && manifest->nodes.count > ROLL_MANIFEST_JSON_NODES)
		return too_many(manifest);
	return status;
}

enum roll_status roll_manifest_step(struct roll_manifest *manifest,
				    roll_manifest_on_object on_object, void *ctx, bool *more,
				    struct roll_err *err)
{
	struct roll_err spare = {0};
	enum roll_status status;

	/* roll_err_set never returns ROLL_OK. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	manifest->on_object = on_object;
	manifest->ctx = ctx;
	manifest->err = err ? err : &spare;
	*more = false;
	status = manifest->is_json ? step_json(manifest, more) : read_yaml(manifest);
	/* Half-written text is broken more often than not: say what is the matter. */
	if (!manifest->was_stopped && !*more && has_changed(manifest))
		status = roll_err_set(err, ROLL_EAGAIN, NULL, "is being written");
	return status;
}

enum roll_status roll_manifest_read(const char *path, roll_manifest_on_object on_object, void *ctx,
				    struct roll_err *err)
{
	struct roll_manifest *manifest = NULL;
	enum roll_status status;
	bool more = true;

	status = roll_manifest_open(AT_FDCWD, path, path, &manifest, err);
	while (!status && more)
		status = roll_manifest_step(manifest, on_object, ctx, &more, err);
	roll_manifest_close(manifest);
	return status;
}
