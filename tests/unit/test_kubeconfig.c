/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "source/kubeconfig.h"
#include "source/secret.h"

#define CONTEXT                                                   \
	"contexts: [{name: c, context: {cluster: k, user: u}}]\n" \
	"current-context: c\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://h:6443/'}}]\n"

static struct roll_cred_spec parse(const char *text)
{
	struct roll_cred_spec spec;
	struct roll_err err = {0};

	if (roll_kubeconfig_parse(roll_str_c(text), "/etc/kube/", NULL, &spec, &err))
		fail_msg("%s: %s", err.where, err.text);
	return spec;
}

static void a_context_names_cluster_and_user(void **state)
{
	static const char text[] = "apiVersion: v1\nkind: Config\npreferences: {}\n"
				   "clusters:\n"
				   "- name: other\n  cluster: {server: 'https://wrong'}\n"
				   "- name: k\n"
				   "  cluster:\n"
				   "    server: https://h:6443/prefix/\n"
				   "    certificate-authority-data: QUJD\n"
				   "    certificate-authority: ignored.pem\n"
				   "    tls-server-name: api.example\n"
				   "    proxy-url: http://proxy:3128\n"
				   "contexts:\n"
				   "- {name: c, context: {cluster: k, user: u, namespace: n}}\n"
				   "- {name: d, context: {cluster: other, user: none}}\n"
				   "current-context: c\n"
				   "users:\n"
				   "- name: u\n"
				   "  user: {client-certificate: certs/me.crt, client-key: "
				   "/keys/me.key, token: t0k}\n";
	struct roll_cred_spec spec = parse(text);

	(void)state;
	assert_string_equal(spec.server, "https://h:6443/prefix");
	assert_string_equal(spec.server_name, "api.example");
	assert_string_equal(spec.proxy, "http://proxy:3128");
	assert_string_equal(spec.ca.data.p, "ABC");
	assert_null(spec.ca.file);
	assert_string_equal(spec.cert.file, "/etc/kube/certs/me.crt");
	assert_string_equal(spec.key.file, "/keys/me.key");
	assert_string_equal(spec.token.p, "t0k");
	assert_null(spec.plugin.command);
	assert_false(spec.is_insecure);
	roll_cred_spec_fini(&spec);
	/* Twice is harmless. */
	roll_cred_spec_fini(&spec);
}

static void a_plugin_is_described(void **state)
{
	static const char text[] = CONTEXT
		"clusters:\n"
		"- name: k\n"
		"  cluster:\n"
		"    server: https://h\n"
		"    insecure-skip-tls-verify: true\n"
		"    extensions:\n"
		"    - {name: client.authentication.k8s.io/exec, extension: {audience: a}}\n"
		"users:\n"
		"- name: u\n"
		"  user:\n"
		"    exec:\n"
		"      apiVersion: client.authentication.k8s.io/v1\n"
		"      command: bin/plugin\n"
		"      args: [get, '--x=1 2']\n"
		"      env: [{name: A, value: b c}, {name: E, value: ''}]\n"
		"      installHint: \"get it\\nthere\"\n"
		"      interactiveMode: IfAvailable\n"
		"      provideClusterInfo: true\n";
	struct roll_cred_spec spec = parse(text);

	(void)state;
	assert_true(spec.is_insecure);
	assert_string_equal(spec.plugin.command, "/etc/kube/bin/plugin");
	assert_string_equal(spec.plugin.args[0], "get");
	assert_string_equal(spec.plugin.args[1], "--x=1 2");
	assert_null(spec.plugin.args[2]);
	assert_string_equal(spec.plugin.env[0], "A=b c");
	assert_string_equal(spec.plugin.env[1], "E=");
	assert_null(spec.plugin.env[2]);
	assert_string_equal(spec.plugin.hint, "get it\\x0athere");
	assert_true(spec.plugin.wants_cluster);
	assert_string_equal(json_string_value(json_object_get(spec.plugin.config, "audience")),
			    "a");
	roll_cred_spec_fini(&spec);
}

static void a_bare_command_is_looked_for_in_the_path(void **state)
{
	struct roll_cred_spec spec = parse(
		CONTEXT CLUSTER "users: [{name: u, user: {exec: {command: plugin, apiVersion: "
				"client.authentication.k8s.io/v1beta1}}}]\n");

	(void)state;
	assert_string_equal(spec.plugin.command, "plugin");
	roll_cred_spec_fini(&spec);
}

static void what_cannot_be_done_is_refused(void **state)
{
#define USER(text) CONTEXT CLUSTER "users: [{name: u, user: {" text "}}]\n"
#define EXEC(text) USER("exec: {apiVersion: client.authentication.k8s.io/v1, " text "}")
	static const struct {
		const char *text;
		const char *where;
	} cases[] = {
		{"", "kubeconfig"},
		{"[]", "kubeconfig"},
		{"{", "kubeconfig"},
		{"a: 1\n---\nb: 1\n", "kubeconfig"},
		{"{}", "current-context"},
		{"current-context: c\n", "contexts"},
		{"current-context: [c]\n", "current-context"},
		{CONTEXT, "clusters"},
		{CONTEXT "clusters: [{name: k}]\n", "clusters"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'https://a'}}, {name: k, cluster: "
			 "{server: 'https://b'}}]\n",
		 "clusters"},
		{CONTEXT CLUSTER, "users"},
		{CONTEXT "clusters: [{name: k, cluster: {}}]\nusers: [{name: u, user: {}}]\n",
		 "server"},
		{CONTEXT
		 "clusters: [{name: k, cluster: {server: h}}]\nusers: [{name: u, user: {}}]\n",
		 "server"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'http://h'}}]\n"
			 "users: [{name: u, user: {}}]\n",
		 "server"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'https://a:b@h'}}]\n"
			 "users: [{name: u, user: {}}]\n",
		 "server"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'https://h?x=1'}}]\n"
			 "users: [{name: u, user: {}}]\n",
		 "server"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 5}}]\n", "server"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', "
			 "insecure-skip-tls-verify: 1}}]\n",
		 "insecure-skip-tls-verify"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', "
			 "insecure-skip-tls-verify: true, certificate-authority: x}}]\n",
		 "insecure-skip-tls-verify"},
		{CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', "
			 "certificate-authority-data: '?'}}]\n",
		 "certificate-authority-data"},
		{USER("username: a, password: b"), "username"},
		{USER("auth-provider: {name: gcp}"), "auth-provider"},
		{USER("as: root"), "as"},
		{USER("as-groups: [a]"), "as-groups"},
		{USER("client-certificate: a"), "user"},
		{USER("client-key-data: QQ=="), "user"},
		{USER("client-key-data: QR=="), "client-key-data"},
		{USER("token: [a]"), "token"},
		{USER("exec: {command: x}"), "exec"},
		{USER("exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"),
		 "exec"},
		{EXEC("args: [a]"), "exec"},
		{EXEC("command: x, args: a"), "args"},
		{EXEC("command: x, args: [1]"), "args"},
		{EXEC("command: x, env: [{value: a}]"), "env"},
		{EXEC("command: x, env: [{name: 'a=b', value: a}]"), "env"},
		{EXEC("command: x, interactiveMode: Always"), "exec"},
		{USER("token: t, exec: {command: x, apiVersion: client.authentication.k8s.io/v1}"),
		 "exec"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct roll_cred_spec spec;
		struct roll_err err = {0};
		enum roll_status status;

		status = roll_kubeconfig_parse(roll_str_c(cases[i].text), "./", NULL, &spec, &err);
		if (status != ROLL_EINVAL || strcmp(err.where, cases[i].where) != 0)
			fail_msg("case %zu: %d, %s: %s", i, status, err.where, err.text);
		assert_true(err.text[0]);
		assert_null(spec.server);
	}
}

static void secrets_are_not_in_messages(void **state)
{
	static const char *const texts[] = {
		USER("token: SECRET, username: SECRET"),
		USER("token: \"SECRET"),
		USER("client-key-data: SECRET!"),
		USER("tokenFile: [SECRET]"),
		"users: {SECRET: SECRET\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct roll_cred_spec spec;
		struct roll_err err = {0};

		assert_int_equal(
			roll_kubeconfig_parse(roll_str_c(texts[i]), "./", NULL, &spec, &err),
			ROLL_EINVAL);
		assert_null(strstr(err.text, "SECRET"));
		assert_null(strstr(err.where, "SECRET"));
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void files_are_merged_and_the_first_counts(void **state)
{
	char folder[] = "kubeconfig-XXXXXX", a[64], b[64], environment[256], home[64];
	struct roll_kubeconfig_place place = {.environment = environment};
	struct roll_cred_spec spec;
	struct roll_err err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(a, sizeof a, "%s/a", folder);
	snprintf(b, sizeof b, "%s/b", folder);
	write_file(a, "clusters: [{name: k, cluster: {server: 'https://first'}}]\n"
		      "current-context: c\n");
	write_file(b, "clusters: [{name: k, cluster: {server: 'https://second'}},\n"
		      "           {name: l, cluster: {server: 'https://third'}}]\n"
		      "current-context: d\n"
		      "contexts: [{name: c, context: {cluster: k, user: u}},\n"
		      "           {name: d, context: {cluster: l, user: u}}]\n"
		      "users: [{name: u, user: {tokenFile: t}}]\n");
	snprintf(environment, sizeof environment, ":%s:%s/absent:%s", a, folder, b);
	assert_int_equal(roll_kubeconfig_read(&place, NULL, &spec, NULL), ROLL_OK);
	assert_string_equal(spec.server, "https://first");
	assert_non_null(strstr(spec.token_file, "/t"));
	roll_cred_spec_fini(&spec);

	assert_int_equal(roll_kubeconfig_read(&place, "d", &spec, NULL), ROLL_OK);
	assert_string_equal(spec.server, "https://third");
	roll_cred_spec_fini(&spec);

	/* A file that is named must be there; of a list, one at least. */
	assert_int_equal(roll_kubeconfig_read(&place, "e", &spec, &err), ROLL_EINVAL);
	place.path = "/nowhere/config";
	assert_int_equal(roll_kubeconfig_read(&place, NULL, &spec, &err), ROLL_EIO);
	place = (struct roll_kubeconfig_place){.environment = "/nowhere/config"};
	assert_int_equal(roll_kubeconfig_read(&place, NULL, &spec, &err), ROLL_ENOENT);
	snprintf(home, sizeof home, "%s", folder);
	place = (struct roll_kubeconfig_place){.home = home};
	assert_int_equal(roll_kubeconfig_read(&place, NULL, &spec, &err), ROLL_EIO);
	place = (struct roll_kubeconfig_place){.path = NULL};
	assert_int_equal(roll_kubeconfig_read(&place, NULL, &spec, &err), ROLL_ENOENT);
	remove(a);
	remove(b);
	rmdir(folder);
}

static void base64_is_read_and_written(void **state)
{
	static const char *const pairs[][2] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
	};
	static const char *const bad[] = {
		"Zg", "Zg=", "Zh==", "Zg==Zg==", "=", "Z===", "Zm9v!", "Zm 9v"};
	struct roll_buf buf = {0};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_int_equal(roll_secret_encode(&buf, roll_str_c(pairs[i][0])), ROLL_OK);
		assert_string_equal(buf.p, pairs[i][1]);
		assert_int_equal(roll_secret_decode(&buf, roll_str_c(pairs[i][1])), ROLL_OK);
		assert_string_equal(buf.p, pairs[i][0]);
	}
	assert_int_equal(roll_secret_decode(&buf, roll_str_c("Zm9v\r\nYmFy\n")), ROLL_OK);
	assert_string_equal(buf.p, "foobar");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(roll_secret_decode(&buf, roll_str_c(bad[i])), ROLL_EINVAL);
	roll_secret_fini(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_names_cluster_and_user),
		cmocka_unit_test(a_plugin_is_described),
		cmocka_unit_test(a_bare_command_is_looked_for_in_the_path),
		cmocka_unit_test(what_cannot_be_done_is_refused),
		cmocka_unit_test(secrets_are_not_in_messages),
		cmocka_unit_test(files_are_merged_and_the_first_counts),
		cmocka_unit_test(base64_is_read_and_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
