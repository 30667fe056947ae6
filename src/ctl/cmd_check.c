/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall check: what would become of these manifests? No view, no server, no cluster is needed.
 *
 * All objects are put into a scratch view, because much of what can go wrong lies between objects:
 * a zone that is not there, two owners of one name, a CNAME beside other data. Where an object
 * stands ("file:line") travels as its scope, which is how the findings get it back.
 */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/ctl.h"
#include "ctl/scratch.h"
#include "source/folder.h"

#define DEPTH_MAX 16

struct check {
	struct roll_ctl *ctl;
	struct roll_scratch *scratch;
	struct roll_snap *snap;
	struct roll_buf key;
	uint64_t files, objects, foreign, faults, warnings;
	struct roll_err err;
	/* What the findings of the present object are told with. */
	struct roll_str where;
	enum roll_kind kind;
	struct roll_str object;
	/* While the claims of a zone are walked: */
	uint32_t number;
};

static void tell(struct check *check, enum roll_severity severity, const char *reason,
		 struct roll_str path, struct roll_str text)
{
	const char *word = severity == ROLL_FAULT ? "error" : "warning";
	struct roll_out *out = &check->ctl->out;

	if (severity == ROLL_FAULT)
		check->faults++;
	else
		check->warnings++;
	if (check->ctl->is_json) {
		roll_out_open(out, NULL, '{');
		roll_out_str(out, "where", check->where);
		roll_out_c(out, "severity", word);
		roll_out_c(out, "reason", reason);
		roll_out_c(out, "kind", check->object.n ? roll_kind_text(check->kind) : NULL);
		roll_out_str(out, "object", check->object);
		roll_out_str(out, "path", path);
		roll_out_str(out, "text", text);
		roll_out_close(out);
		return;
	}
	roll_out_shown(out, check->where);
	roll_out_text(out, ": %s: ", word);
	if (check->object.n) {
		roll_out_text(out, "%s ", roll_kind_text(check->kind));
		roll_out_shown(out, check->object);
		roll_out_text(out, ": ");
	}
	if (path.n) {
		roll_out_shown(out, path);
		roll_out_text(out, " ");
	}
	roll_out_sentence(out, text);
	roll_out_text(out, " [%s]\n", reason);
}

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	tell(ctx, finding->severity, roll_reason_text(finding->reason), finding->path,
	     finding->text);
}

/* "namespace/name" as the view has it; whatever there is of it. */
static void name_object(struct check *check, const struct roll_object *object)
{
	roll_buf_reset(&check->key);
	if (object->ns.n) {
		roll_buf_add_str(&check->key, object->ns);
		roll_buf_add_char(&check->key, '/');
	}
	roll_buf_add_str(&check->key, object->name);
	check->kind = object->kind;
	check->object = roll_buf_str(&check->key);
}

/* --- reading --- */

static void on_duplicate(void *ctx, const struct roll_object *object, struct roll_str scope,
			 struct roll_str first_scope)
{
	struct check *check = ctx;
	char text[300], shown[200];

	name_object(check, object);
	check->where = scope;
	snprintf(text, sizeof text, "is already at %s; this one is ignored",
		 roll_str_show(first_scope, shown, sizeof shown));
	tell(check, ROLL_FAULT, roll_reason_text(ROLL_REASON_DUPLICATE_OBJECT), roll_str_n("", 0),
	     roll_str_c(text));
}

/* Findings on a whole file, or on an object of which not even the name is known. */
static void forget_object(struct check *check, struct roll_str where)
{
	check->object = roll_str_n("", 0);
	check->where = where;
}

static enum roll_status on_object(void *ctx, json_t *json, struct roll_str where)
{
	struct check *check = ctx;
	struct roll_findings findings = {on_finding, check};
	struct roll_object object;
	enum roll_status status;

	/* Once to learn its name, once more to report under it. */
	forget_object(check, where);
	status = roll_object_decode(json, &object, NULL);
	if (status == ROLL_ENOENT) {
		check->foreign++;
		return ROLL_OK;
	}
	name_object(check, &object);
	if (!object.name.n)
		check->object = roll_str_n("", 0);
	status = roll_object_decode(json, &object, &findings);
	check->objects++;
	if (status == ROLL_EINVAL)
		return ROLL_OK;
	if (status != ROLL_OK)
		return status;
	if (object.is_terminating) {
		tell(check, ROLL_WARNING, roll_reason_text(ROLL_REASON_SUSPICIOUS),
		     roll_str_c("metadata.deletionTimestamp"),
		     roll_str_c("is set: the object counts as absent"));
		return ROLL_OK;
	}
	return roll_scratch_put(check->scratch, &object, json, where, &check->err);
}

static enum roll_status read_file(struct check *check, const char *path)
{
	struct roll_err err = {0};
	enum roll_status status;

	check->files++;
	check->err = (struct roll_err){0};
	status = roll_manifest_read(path, on_object, check, &err);
	if (status == ROLL_OK || check->err.code != ROLL_OK || status == ROLL_ECANCELED ||
	    status == ROLL_ENOMEM)
		return status;
	/* Objects before the mistake were read and are judged too. */
	roll_buf_reset(&check->key);
	roll_buf_add_c(&check->key, path);
	if (err.where[0])
		roll_buf_printf(&check->key, ": %s", err.where);
	forget_object(check, roll_buf_str(&check->key));
	tell(check, ROLL_FAULT, roll_reason_text(ROLL_REASON_INVALID), roll_str_n("", 0),
	     roll_str_c(err.text[0] ? err.text : roll_status_text(status)));
	return ROLL_OK;
}

static bool is_manifest(const char *name)
{
	static const char *const ends[] = {".yaml", ".yml", ".json"};
	size_t n = strlen(name), i;

	for (i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	}
	return false;
}

static enum roll_status read_path(struct check *check, const char *path, unsigned depth);

/* As rollcall-sync reads one: sorted, subfolders too, hidden ones and other files passed over. */
static enum roll_status read_folder(struct check *check, const char *path, unsigned depth)
{
	enum roll_status status = ROLL_OK;
	struct dirent **entries;
	int count, i;

	count = scandir(path, &entries, NULL, alphasort);
	if (count < 0) {
		forget_object(check, roll_str_c(path));
		tell(check, ROLL_FAULT, roll_reason_text(ROLL_REASON_INVALID), roll_str_n("", 0),
		     roll_str_c(strerror(errno)));
		return ROLL_OK;
	}
	for (i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		size_t size = strlen(path) + strlen(name) + 2;
		char *below = malloc(size);
		struct stat st;

		if (!below) {
			status = ROLL_ENOMEM;
		} else if (status == ROLL_OK && name[0] != '.') {
			snprintf(below, size, "%s/%s", path, name);
			if (stat(below, &st) == 0 && (S_ISDIR(st.st_mode) || is_manifest(name)))
				status = read_path(check, below, depth + 1);
		}
		free(below);
		free(entries[i]);
	}
	free(entries);
	return status;
}

static enum roll_status read_path(struct check *check, const char *path, unsigned depth)
{
	struct stat st;

	if (roll_scratch_is_interrupted())
		return ROLL_ECANCELED;
	if (stat(path, &st) != 0) {
		forget_object(check, roll_str_c(path));
		tell(check, ROLL_FAULT, roll_reason_text(ROLL_REASON_INVALID), roll_str_n("", 0),
		     roll_str_c(strerror(errno)));
		return ROLL_OK;
	}
	if (!S_ISDIR(st.st_mode))
		return read_file(check, path);
	if (depth == DEPTH_MAX) {
		forget_object(check, roll_str_c(path));
		tell(check, ROLL_FAULT, roll_reason_text(ROLL_REASON_INVALID), roll_str_n("", 0),
		     roll_str_c("folders are nested too deeply to be read"));
		return ROLL_OK;
	}
	return read_folder(check, path, depth);
}

/* --- judging --- */

static void on_row_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
			   struct roll_str text)
{
	tell(ctx, (enum roll_severity)severity, roll_reason_text((enum roll_reason)reason), path,
	     text);
}

static void judge_waiting(struct check *check, const struct roll_object_row *row)
{
	struct roll_object_row zone;
	char text[400], shown[300];

	if (row->number || !row->zone.n)
		return;
	roll_str_show(row->zone, shown, sizeof shown);
	if (roll_snap_object(check->snap, ROLL_ROW_ZONE, row->zone, &zone) == ROLL_OK)
		snprintf(text, sizeof text,
			 "names the DNSZone %s, which has no usable domain: "
			 "nothing is served",
			 shown);
	else
		snprintf(text, sizeof text,
			 "names the DNSZone %s, which is not among these "
			 "objects: nothing is served until it is there",
			 shown);
	tell(check, ROLL_WARNING, "Pending", roll_str_c("spec.dnsZoneRef.name"), roll_str_c(text));
}

static enum roll_status judge_object(void *ctx, const struct roll_object_row *row)
{
	struct check *check = ctx;
	uint64_t kept = check->faults + check->warnings;
	uint64_t total = (uint64_t)row->fault_count + row->warning_count;
	char text[100];
	enum roll_status status;

	check->where = row->scope;
	check->kind = (enum roll_kind)row->kind;
	check->object = row->key;
	status = roll_row_findings(row, on_row_finding, check);
	if (status != ROLL_OK)
		return status;
	kept = check->faults + check->warnings - kept;
	if (total > kept) {
		snprintf(text, sizeof text, "there are %llu more findings on this object",
			 (unsigned long long)(total - kept));
		tell(check, row->fault_count ? ROLL_FAULT : ROLL_WARNING,
		     roll_reason_text(ROLL_REASON_INVALID), roll_str_n("", 0), roll_str_c(text));
	}
	if (row->kind == ROLL_ROW_RECORDSET)
		judge_waiting(check, row);
	return roll_scratch_is_interrupted() ? ROLL_ECANCELED : ROLL_OK;
}

/* Findings between objects are told at the object that is not served. */
static enum roll_status turn_to(struct check *check, enum roll_row_kind kind, struct roll_str key)
{
	struct roll_object_row row;
	enum roll_status status = roll_snap_object(check->snap, kind, key, &row);

	check->kind = (enum roll_kind)kind;
	check->object = key;
	check->where = status == ROLL_OK ? row.scope : roll_str_n("", 0);
	return status;
}

static enum roll_status judge_claims(void *ctx, const struct roll_name *owner,
				     const struct roll_claim *claims, size_t count)
{
	char name[ROLL_NAME_TEXT_SIZE], type[ROLL_TYPE_TEXT_SIZE], by_type[ROLL_TYPE_TEXT_SIZE];
	char text[ROLL_NAME_TEXT_SIZE + 700], shown[300];
	struct check *check = ctx;
	const struct roll_zone *zone;
	enum roll_status status;
	size_t i;

	status = roll_snap_zone_of(check->snap, owner, &zone);
	if (status != ROLL_OK && status != ROLL_ENOENT)
		return status;
	roll_name_show(owner, name);
	if (status == ROLL_OK && zone->number != check->number) {
		char deeper[ROLL_NAME_TEXT_SIZE];

		roll_name_show(&zone->domain, deeper);
		for (i = 0; i < count; i++) {
			status = turn_to(check, ROLL_ROW_RECORDSET, claims[i].object);
			if (status != ROLL_OK)
				return status;
			snprintf(text, sizeof text,
				 "%s is never answered from here: the deeper "
				 "zone ",
				 name);
			roll_buf_reset(&check->key);
			roll_buf_add_c(&check->key, text);
			roll_buf_add_c(&check->key, deeper);
			roll_buf_add_c(&check->key, " holds it");
			tell(check, ROLL_WARNING, "Shadowed", roll_str_n("", 0),
			     roll_buf_str(&check->key));
		}
		return ROLL_OK;
	}
	for (i = 0; i < count; i++) {
		const struct roll_claim *claim = &claims[i];

		if (claim->verdict == ROLL_VERDICT_SERVED)
			continue;
		status = turn_to(check, ROLL_ROW_RECORDSET, claim->object);
		if (status != ROLL_OK)
			return status;
		roll_words_type(claim->rrset.type, type);
		if (claim->by < count)
			snprintf(text, sizeof text, "%s %s is not served: %s has %s there and %s",
				 name, type,
				 roll_str_show(claims[claim->by].object, shown, sizeof shown),
				 roll_words_type(claims[claim->by].rrset.type, by_type),
				 roll_words_older(claims[claim->by].created_s, claim->created_s));
		else
			snprintf(text, sizeof text,
				 "%s %s is not served: the zone's own SOA and NS "
				 "stand at its apex",
				 name, type);
		tell(check, ROLL_FAULT, roll_verdict_text(claim->verdict), roll_str_n("", 0),
		     roll_str_c(text));
	}
	return roll_scratch_is_interrupted() ? ROLL_ECANCELED : ROLL_OK;
}

static void judge_state(struct check *check, const struct roll_domain *domain, uint32_t index,
			enum roll_zone_state state)
{
	const struct roll_domain_claim *claim = &domain->row->claims[index];
	char text[ROLL_NAME_TEXT_SIZE + 700], name[ROLL_NAME_TEXT_SIZE], shown[300];

	roll_name_show(&domain->name, name);
	if (state == ROLL_ZONE_IN_USE && domain->holder != ROLL_BY_NONE)
		snprintf(text, sizeof text, "%s is not served from here: DNSZone %s has it and %s",
			 name,
			 roll_str_show(domain->row->claims[domain->holder].object, shown,
				       sizeof shown),
			 roll_words_older(domain->row->claims[domain->holder].created_s,
					  claim->created_s));
	else if (claim->class_name.n)
		snprintf(text, sizeof text, "%s is not served: %s (%s)", name,
			 roll_words_why(state),
			 roll_str_show(claim->class_name, shown, sizeof shown));
	else
		snprintf(text, sizeof text, "%s is not served: %s", name, roll_words_why(state));
	tell(check, ROLL_FAULT, state == ROLL_ZONE_IN_USE ? "DNSZoneInUse" : "Pending",
	     roll_str_n("", 0), roll_str_c(text));
}

static enum roll_status judge_domain(void *ctx, const struct roll_domain *domain)
{
	struct check *check = ctx;
	enum roll_status status;
	uint32_t i;

	for (i = 0; i < domain->row->claim_count; i++) {
		const struct roll_domain_claim *claim = &domain->row->claims[i];
		enum roll_zone_state state;

		status = turn_to(check, ROLL_ROW_ZONE, claim->object);
		if (status == ROLL_OK)
			status = roll_snap_claim_state(check->snap, domain, i, &state);
		if (status != ROLL_OK)
			return status;
		if (state != ROLL_ZONE_SERVED) {
			judge_state(check, domain, i, state);
			continue;
		}
		check->number = claim->number;
		status = roll_snap_all_claims(check->snap, claim->number, &domain->name,
					      judge_claims, check);
		if (status != ROLL_OK && status != ROLL_ENOENT)
			return status;
	}
	return ROLL_OK;
}

static enum roll_status judge(struct check *check)
{
	enum roll_status status = ROLL_OK;
	unsigned kind;

	for (kind = 0; status == ROLL_OK && kind < ROLL_ROW_KINDS; kind++)
		status = roll_snap_objects(check->snap, (enum roll_row_kind)kind,
					   roll_str_n(NULL, 0), judge_object, check);
	return status == ROLL_OK ? roll_snap_domains(check->snap, judge_domain, check) : status;
}

static void conclude(struct check *check)
{
	struct roll_out *out = &check->ctl->out;

	if (check->ctl->is_json) {
		roll_out_close(out);
		roll_out_u64(out, "files", check->files);
		roll_out_u64(out, "objects", check->objects);
		roll_out_u64(out, "otherObjects", check->foreign);
		roll_out_u64(out, "errors", check->faults);
		roll_out_u64(out, "warnings", check->warnings);
		return;
	}
	roll_out_text(out, "%llu objects in %llu files: %llu errors, %llu warnings",
		      (unsigned long long)check->objects, (unsigned long long)check->files,
		      (unsigned long long)check->faults, (unsigned long long)check->warnings);
	if (check->foreign)
		roll_out_text(out, "; %llu objects of other kinds passed over",
			      (unsigned long long)check->foreign);
	roll_out_text(out, "\n");
}

int roll_cmd_check(struct roll_ctl *ctl)
{
	struct check check = {.ctl = ctl};
	struct roll_scratch_conf conf = {.controller = ctl->controller,
					 .clock = ctl->clock,
					 .on_duplicate = on_duplicate,
					 .ctx = &check};
	enum roll_status status;
	int code, i;

	roll_buf_init(&check.key, (size_t)16 << 10);
	if (ctl->is_json) {
		roll_out_open(&ctl->out, NULL, '{');
		roll_out_open(&ctl->out, "findings", '[');
	}
	status = roll_scratch_new(&conf, &check.scratch, &check.err);
	for (i = 0; status == ROLL_OK && i < ctl->arg_count; i++)
		status = read_path(&check, ctl->args[i], 0);
	if (status == ROLL_OK)
		status = roll_scratch_finish(check.scratch, &check.snap, &check.err);
	if (status == ROLL_OK)
		status = judge(&check);
	if (status == ROLL_OK) {
		conclude(&check);
		code = check.faults || check.warnings ? ROLL_EXIT_FINDINGS : ROLL_EXIT_OK;
	} else {
		if (ctl->is_json)
			roll_out_close(&ctl->out);
		roll_ctl_complain(ctl, "the check could not be made: %s%s%s",
				  roll_status_text(status), check.err.text[0] ? ": " : "",
				  check.err.text);
		code = ROLL_EXIT_SOURCE;
	}
	if (ctl->is_json)
		roll_out_close(&ctl->out);
	roll_buf_fini(&check.key);
	roll_scratch_free(check.scratch);
	return code;
}
