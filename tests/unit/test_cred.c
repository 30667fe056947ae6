/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "source/cred.h"
#include "source/exec.h"
#include "source/secret.h"
#include "tests/lib/until.h"

#define PATIENCE_MS 10000
#define V1 "client.authentication.k8s.io/v1"

struct world {
	struct roll_loop *loop;
	struct roll_clock clock;
	int64_t wall_ms;
	char folder[32];
	char path[64]; /* of a file in it */
	struct roll_cred *cred;
};

struct answer {
	size_t count;
	bool is_good;
	char token[64], ca[64], cert[64], key[64];
	struct roll_err err;
	struct roll_cred_wait *cancels;
	struct world *asks; /* again, from within */
};

static int64_t monotonic_ms(void *ctx)
{
	(void)ctx;
	return 0;
}

static int64_t wall_ms(void *ctx)
{
	return ((struct world *)ctx)->wall_ms;
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	snprintf(world->folder, sizeof world->folder, "cred-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->path, sizeof world->path, "%s/file", world->folder);
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->clock = (struct roll_clock){monotonic_ms, wall_ms, world};
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	roll_cred_free(world->cred);
	roll_loop_free(world->loop);
	remove(world->path);
	rmdir(world->folder);
	free(world);
	return 0;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void write_script(struct world *world, const char *text)
{
	char script[2048];

	snprintf(script, sizeof script, "#!/bin/sh\n%s\n", text);
	write_text(world->path, script);
	assert_int_equal(chmod(world->path, 0700), 0);
}

static void make(struct world *world, struct roll_cred_spec *spec)
{
	roll_cred_free(world->cred);
	world->cred = NULL;
	if (!spec->server)
		spec->server = strdup("https://h");
	assert_int_equal(roll_cred_new(world->loop, &world->clock, spec, &world->cred, NULL),
			 ROLL_OK);
	assert_null(spec->server);
}

static void make_plugin(struct world *world, const char *script)
{
	struct roll_cred_spec spec = {0};
	char path[128];

	write_script(world, script);
	snprintf(path, sizeof path, "./%s", world->path);
	spec.plugin.command = strdup(path);
	spec.plugin.api_version = strdup(V1);
	make(world, &spec);
}

static void copy(char *to, size_t size, struct roll_str from)
{
	snprintf(to, size, ROLL_STR_FMT, ROLL_STR_ARG(from));
}

static void on_identity(void *ctx, const struct roll_http_identity *identity,
			const struct roll_err *err)
{
	struct answer *answer = ctx;

	answer->count++;
	answer->is_good = identity != NULL;
	assert_true(!identity == !!err);
	if (err)
		answer->err = *err;
	if (identity) {
		copy(answer->token, sizeof answer->token, identity->token);
		copy(answer->ca, sizeof answer->ca, identity->ca);
		copy(answer->cert, sizeof answer->cert, identity->cert);
		copy(answer->key, sizeof answer->key, identity->key);
	}
	roll_cred_cancel(answer->cancels);
	answer->cancels = NULL;
	if (answer->asks) {
		struct world *world = answer->asks;

		answer->asks = NULL;
		assert_non_null(roll_cred_get(world->cred, on_identity, answer));
	}
}

static bool is_answered(void *ctx)
{
	return ((struct answer *)ctx)->count > 0;
}

static struct answer ask(struct world *world)
{
	struct answer answer = {0};

	assert_non_null(roll_cred_get(world->cred, on_identity, &answer));
	assert_int_equal(answer.count, 0);
	assert_true(until(world->loop, is_answered, &answer, PATIENCE_MS));
	assert_int_equal(answer.count, 1);
	return answer;
}

static void files_are_read_for_each_request(void **state)
{
	struct world *world = *state;
	struct roll_cred_spec spec = {0};
	struct answer answer;

	spec.token_file = strdup(world->path);
	make(world, &spec);
	assert_false(ask(world).is_good);
	write_text(world->path, "one\n");
	assert_string_equal(ask(world).token, "one");
	write_text(world->path, "  two  \n\n");
	assert_string_equal(ask(world).token, "two");
	write_text(world->path, "");
	answer = ask(world);
	assert_false(answer.is_good);
	assert_int_equal(answer.err.code, ROLL_EINVAL);
	/* Not even if it would be a header of its own. */
	write_text(world->path, "one\r\nX-Remote-User: admin");
	assert_false(ask(world).is_good);
	remove(world->path);
	assert_int_equal(ask(world).err.code, ROLL_EIO);
}

static void certificates_come_from_bytes_or_files(void **state)
{
	struct world *world = *state;
	struct roll_cred_spec spec = {0};
	struct answer answer;

	spec.ca.file = strdup(world->path);
	assert_int_equal(roll_secret_set(&spec.cert.data, roll_str_c("CERT")), ROLL_OK);
	assert_int_equal(roll_secret_set(&spec.key.data, roll_str_c("KEY")), ROLL_OK);
	write_text(world->path, "CA");
	make(world, &spec);
	answer = ask(world);
	assert_string_equal(answer.ca, "CA");
	assert_string_equal(answer.cert, "CERT");
	assert_string_equal(answer.key, "KEY");
	assert_string_equal(answer.token, "");
	/* An authority that is lost is not the system's. */
	write_text(world->path, "");
	assert_false(ask(world).is_good);
}

static void a_pod_has_a_service_account(void **state)
{
	struct world *world = *state;
	struct roll_cred_spec spec;
	char token[64];

	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, "10.0.0.1", "443", NULL),
			 ROLL_EDENIED);
	snprintf(token, sizeof token, "%s/token", world->folder);
	write_text(token, "t");
	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, "10.0.0.1", "443", NULL),
			 ROLL_OK);
	assert_string_equal(spec.server, "https://10.0.0.1:443");
	assert_string_equal(spec.token_file, token);
	roll_cred_spec_fini(&spec);
	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, "fd00::1", "6443", NULL),
			 ROLL_OK);
	assert_string_equal(spec.server, "https://[fd00::1]:6443");
	roll_cred_spec_fini(&spec);
	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, NULL, "443", NULL),
			 ROLL_EINVAL);
	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, "h", NULL, NULL), ROLL_EINVAL);
	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, "h", "x", NULL), ROLL_EINVAL);
	assert_int_equal(roll_cred_in_cluster(&spec, world->folder, "a b", "1", NULL), ROLL_EINVAL);
	remove(token);
}

#define GIVE(status)                             \
	"echo run >> \"$0.runs\"; cat <<'END'\n" \
	"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}\nEND"

static size_t runs(struct world *world)
{
	char path[80], line[16];
	FILE *file;
	size_t count = 0;

	snprintf(path, sizeof path, "%s.runs", world->path);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		count++;
	if (file)
		fclose(file);
	remove(path);
	return count;
}

static void a_plugin_gives_credentials_until_they_expire(void **state)
{
	struct world *world = *state;
	struct answer answers[3] = {0};

	make_plugin(world, GIVE("\"token\":\"abc\",\"expirationTimestamp\":"
				"\"2026-12-02T00:00:00Z\""));
	world->wall_ms = 1796169600000 - 60000;
	for (size_t i = 0; i < 3; i++)
		assert_non_null(roll_cred_get(world->cred, on_identity, &answers[i]));
	for (size_t i = 0; i < 3; i++) {
		assert_true(until(world->loop, is_answered, &answers[i], PATIENCE_MS));
		assert_string_equal(answers[i].token, "abc");
	}
	assert_string_equal(ask(world).token, "abc");
	assert_int_equal(runs(world), 1);
	/* Near its end it is asked again, and again if what it gives is no better. */
	world->wall_ms = 1796169600000 - 1000;
	assert_string_equal(ask(world).token, "abc");
	assert_string_equal(ask(world).token, "abc");
	assert_int_equal(runs(world), 2);
	world->wall_ms = 0;
	assert_string_equal(ask(world).token, "abc");
	assert_int_equal(runs(world), 0);
	roll_cred_reject(world->cred);
	assert_string_equal(ask(world).token, "abc");
	assert_int_equal(runs(world), 1);
}

static void a_plugin_may_give_a_certificate(void **state)
{
	struct world *world = *state;
	struct answer answer;

	make_plugin(world, GIVE("\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\""));
	answer = ask(world);
	assert_string_equal(answer.cert, "C");
	assert_string_equal(answer.key, "K");
	assert_string_equal(answer.token, "");
	runs(world);
}

static void a_plugin_knows_what_it_is_asked_for(void **state)
{
	struct world *world = *state;
	struct roll_cred_spec spec = {0};
	struct answer answer;
	char path[128];

	/* No shell looks at arguments; stdin is empty; the environment is ours and more. */
	write_script(world, "read line && exit 7\n"
			    "[ \"$1\" = 'a b;$(x)' ] && [ $# = 1 ] && [ \"$EXTRA\" = '1 2' ] && "
			    "[ -n \"$PATH\" ] || exit 8\n"
			    "case $KUBERNETES_EXEC_INFO in\n"
			    "*'\"certificate-authority-data\":\"Q0E=\"'*'\"config\":{\"a\":1}'*"
			    "'\"server\":\"https://h\"'*'\"interactive\":false'*) ;;\n"
			    "*) echo \"$KUBERNETES_EXEC_INFO\" >&2; exit 9;;\n"
			    "esac\n" GIVE("\"token\":\"t\""));
	snprintf(path, sizeof path, "./%s", world->path);
	spec.plugin.command = strdup(path);
	spec.plugin.api_version = strdup(V1);
	spec.plugin.args = calloc(2, sizeof(char *));
	spec.plugin.args[0] = strdup("a b;$(x)");
	spec.plugin.env = calloc(2, sizeof(char *));
	spec.plugin.env[0] = strdup("EXTRA=1 2");
	spec.plugin.wants_cluster = true;
	spec.plugin.config = json_pack("{s:i}", "a", 1);
	assert_int_equal(roll_secret_set(&spec.ca.data, roll_str_c("CA")), ROLL_OK);
	make(world, &spec);
	answer = ask(world);
	if (!answer.is_good)
		fail_msg("%s: %s", answer.err.where, answer.err.text);
	runs(world);
}

static void a_plugin_that_fails_is_an_error(void **state)
{
	static const struct {
		const char *script;
		const char *text;
	} cases[] = {
		{"exit 3", "exited with 3"},
		{"kill -9 $$", "ended by signal 9"},
		{"echo SECRET", "one JSON object"},
		{"echo '{}'", "ExecCredential"},
		{"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v2\"}'", "ExecCredential"},
		{GIVE(""), "neither a token"},
		{GIVE("\"clientCertificateData\":\"C\""), "neither a token"},
		{GIVE("\"token\":\"t\",\"expirationTimestamp\":\"soon\""), "no time"},
		{GIVE("\"token\":\"t\\nX-Header: 1\""), "no token has"},
		{"head -c 2000000 /dev/zero", "too large"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct answer answer;

		make_plugin(world, cases[i].script);
		answer = ask(world);
		assert_false(answer.is_good);
		if (!strstr(answer.err.text, cases[i].text))
			fail_msg("case %zu: %s", i, answer.err.text);
		assert_null(strstr(answer.err.text, "SECRET"));
		runs(world);
	}
}

static void a_plugin_that_is_not_there_is_an_error(void **state)
{
	struct world *world = *state;
	struct roll_cred_spec spec = {0};
	struct answer answer;

	spec.plugin.command = strdup("/nowhere/plugin");
	spec.plugin.api_version = strdup(V1);
	spec.plugin.hint = strdup("apt install plugin");
	make(world, &spec);
	answer = ask(world);
	assert_false(answer.is_good);
	assert_non_null(strstr(answer.err.text, "apt install plugin"));
}

static void waiting_can_be_given_up(void **state)
{
	struct world *world = *state;
	struct answer first = {0}, second = {0};

	make_plugin(world, GIVE("\"token\":\"t\""));
	assert_non_null(roll_cred_get(world->cred, on_identity, &first));
	first.cancels = roll_cred_get(world->cred, on_identity, &second);
	first.asks = world;
	assert_true(until(world->loop, is_answered, &first, PATIENCE_MS));
	for_ms(world->loop, 20);
	assert_int_equal(second.count, 0);
	runs(world);
	/* And all of it, while the plugin runs. */
	make_plugin(world, "sleep 100");
	assert_non_null(roll_cred_get(world->cred, on_identity, &second));
	for_ms(world->loop, 20);
	roll_cred_free(world->cred);
	world->cred = NULL;
	assert_int_equal(second.count, 0);
}

struct output {
	bool is_done;
	enum roll_status status;
};

static void on_exec_done(void *ctx, enum roll_status status, struct roll_str output,
			 const struct roll_err *err)
{
	struct output *out = ctx;

	(void)output;
	(void)err;
	out->is_done = true;
	out->status = status;
}

static bool is_exec_done(void *ctx)
{
	return ((struct output *)ctx)->is_done;
}

static void a_program_has_a_deadline_and_takes_its_children_along(void **state)
{
	const char *const argv[] = {"/bin/sh", "-c", "sleep 100 & sleep 100", NULL};
	const char *const quick[] = {"/bin/sh", "-c", "sleep 100 & exit 0", NULL};
	struct world *world = *state;
	struct output out = {0};
	struct roll_exec_spec spec = {argv, (const char *const *)environ, 50, on_exec_done, &out};
	struct roll_exec *exec;

	assert_int_equal(roll_exec_start(world->loop, &spec, &exec, NULL), ROLL_OK);
	assert_true(until(world->loop, is_exec_done, &out, PATIENCE_MS));
	assert_int_equal(out.status, ROLL_EIO);
	/* A child that holds its output open does not hold us up. */
	out.is_done = false;
	spec.argv = quick;
	spec.deadline_ms = PATIENCE_MS * 2;
	assert_int_equal(roll_exec_start(world->loop, &spec, &exec, NULL), ROLL_OK);
	assert_true(until(world->loop, is_exec_done, &out, PATIENCE_MS));
	assert_int_equal(out.status, ROLL_OK);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(files_are_read_for_each_request),
		TEST(certificates_come_from_bytes_or_files),
		TEST(a_pod_has_a_service_account),
		TEST(a_plugin_gives_credentials_until_they_expire),
		TEST(a_plugin_may_give_a_certificate),
		TEST(a_plugin_knows_what_it_is_asked_for),
		TEST(a_plugin_that_fails_is_an_error),
		TEST(a_plugin_that_is_not_there_is_an_error),
		TEST(waiting_can_be_given_up),
		TEST(a_program_has_a_deadline_and_takes_its_children_along),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
