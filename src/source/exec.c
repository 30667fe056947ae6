/* SPDX-License-Identifier: Apache-2.0 */
#include "source/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/secret.h"

struct roll_exec {
	struct roll_loop *loop;
	pid_t pid; /* and its process group; 0: reaped */
	int pidfd;
	int out_fd;
	struct event *exit_event;
	struct event *out_event;
	struct roll_timer *deadline;
	struct roll_buf output;
	void (*on_done)(void *ctx, enum roll_status status, struct roll_str output,
			const struct roll_err *err);
	void *ctx;
};

static void free_exec(struct roll_exec *exec)
{
	if (exec->pid > 0) {
		kill(-exec->pid, SIGKILL);
		while (waitpid(exec->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (exec->exit_event)
		event_free(exec->exit_event);
	if (exec->out_event)
		event_free(exec->out_event);
	roll_timer_free(exec->deadline);
	if (exec->pidfd >= 0)
		close(exec->pidfd);
	if (exec->out_fd >= 0)
		close(exec->out_fd);
	roll_secret_fini(&exec->output);
	free(exec);
}

static void finish(struct roll_exec *exec, enum roll_status status, const struct roll_err *err)
{
	exec->on_done(exec->ctx, status, status ? roll_str_n(NULL, 0) : roll_buf_str(&exec->output),
		      err);
	free_exec(exec);
}

/* What is there now. EAGAIN: more may come; OK: the end. */
static enum roll_status take_output(struct roll_exec *exec)
{
	for (;;) {
		size_t room = exec->output.limit_bytes - exec->output.n;
		ssize_t got;
		char more;

		/* The builder has all its room from the start, so nothing is copied. */
		got = room ? read(exec->out_fd, exec->output.p + exec->output.n, room)
			   : read(exec->out_fd, &more, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? ROLL_EAGAIN : ROLL_EIO;
		if (got == 0)
			return ROLL_OK;
		if (room == 0)
			return ROLL_ELIMIT;
		exec->output.n += (size_t)got;
	}
}

static void on_output(evutil_socket_t fd, short what, void *ctx)
{
	struct roll_exec *exec = ctx;
	enum roll_status status = take_output(exec);
	struct roll_err err;

	(void)fd;
	(void)what;
	if (status == ROLL_EAGAIN)
		return;
	event_del(exec->out_event);
	if (status == ROLL_OK)
		return;
	roll_err_set(&err, status, NULL, "its output is too large or cannot be read");
	finish(exec, status, &err);
}

static void on_exit_event(evutil_socket_t fd, short what, void *ctx)
{
	enum roll_status status = ROLL_OK;
	struct roll_exec *exec = ctx;
	struct roll_err err = {0};
	int how = 0;

	(void)fd;
	(void)what;
	/* What it leaves behind ends too; once it is reaped the number may be anybody's. */
	kill(-exec->pid, SIGKILL);
	if (waitpid(exec->pid, &how, WNOHANG) != exec->pid)
		return;
	exec->pid = 0;
	if (WIFSIGNALED(how))
		status =
			roll_err_set(&err, ROLL_EIO, NULL, "was ended by signal %d", WTERMSIG(how));
	else if (WEXITSTATUS(how))
		status = roll_err_set(&err, ROLL_EIO, NULL, "exited with %d", WEXITSTATUS(how));
	else if (take_output(exec) == ROLL_ELIMIT)
		status = roll_err_set(&err, ROLL_ELIMIT, NULL, "its output is too large");
	finish(exec, status, &err);
}

static void on_deadline(void *ctx)
{
	struct roll_exec *exec = ctx;
	struct roll_err err;

	roll_err_set(&err, ROLL_EIO, NULL, "did not end in time");
	finish(exec, ROLL_EIO, &err);
}

static enum roll_status spawn(struct roll_exec *exec, const struct roll_exec_spec *spec, int out_fd,
			      struct roll_err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int failure;

	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&actions))
		return ROLL_ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return ROLL_ENOMEM;
	}
	/* Ignored signals would stay ignored in it. */
	failure = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
								POSIX_SPAWN_SETSIGMASK |
								POSIX_SPAWN_SETSIGDEF) ||
		  posix_spawnattr_setpgroup(&attributes, 0) ||
		  posix_spawnattr_setsigmask(&attributes, &none) ||
		  posix_spawnattr_setsigdefault(&attributes, &all) ||
		  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
						   0) ||
		  posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	/* The interface takes pointers to what it does not change. */
	failure = failure ? ENOMEM
			  : posix_spawnp(&exec->pid, spec->argv[0], &actions, &attributes,
					 (char *const *)(uintptr_t)spec->argv,
					 (char *const *)(uintptr_t)spec->env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (failure) {
		exec->pid = 0;
		return roll_err_errno(err, failure == ENOMEM ? ROLL_ENOMEM : ROLL_EIO, failure,
				      NULL, "cannot be started");
	}
	return ROLL_OK;
}

enum roll_status roll_exec_start(struct roll_loop *loop, const struct roll_exec_spec *spec,
				 struct roll_exec **out, struct roll_err *err)
{
	struct roll_exec *exec = calloc(1, sizeof *exec);
	struct event_base *base = roll_loop_base(loop);
	enum roll_status status = ROLL_ENOMEM;
	int pipe_fds[2] = {-1, -1};

	if (!exec)
		goto out;
	exec->loop = loop;
	exec->pidfd = -1;
	exec->out_fd = -1;
	exec->on_done = spec->on_done;
	exec->ctx = spec->ctx;
	roll_buf_init(&exec->output, ROLL_EXEC_OUTPUT_LIMIT_BYTES);
	if (!roll_buf_extend(&exec->output, ROLL_EXEC_OUTPUT_LIMIT_BYTES))
		goto out;
	roll_buf_truncate(&exec->output, 0);
	if (pipe2(pipe_fds, O_CLOEXEC)) {
		status = roll_err_errno(err, ROLL_EIO, errno, NULL, "no pipe for it");
		goto out;
	}
	exec->out_fd = pipe_fds[0];
	if (fcntl(exec->out_fd, F_SETFL, O_NONBLOCK)) {
		status = ROLL_EIO;
		goto out;
	}
	status = spawn(exec, spec, pipe_fds[1], err);
	if (status)
		goto out;
	exec->pidfd = (int)syscall(SYS_pidfd_open, exec->pid, 0);
	if (exec->pidfd < 0) {
		status = roll_err_errno(err, ROLL_EIO, errno, NULL, "cannot be watched");
		goto out;
	}
	fcntl(exec->pidfd, F_SETFD, FD_CLOEXEC);
	status = ROLL_ENOMEM;
	exec->exit_event = event_new(base, exec->pidfd, EV_READ | EV_PERSIST, on_exit_event, exec);
	exec->out_event = event_new(base, exec->out_fd, EV_READ | EV_PERSIST, on_output, exec);
	exec->deadline = roll_timer_new(loop, on_deadline, exec);
	if (!exec->exit_event || !exec->out_event || !exec->deadline ||
	    event_add(exec->exit_event, NULL) || event_add(exec->out_event, NULL))
		goto out;
	roll_timer_set(exec->deadline, spec->deadline_ms);
	status = ROLL_OK;
	*out = exec;
out:
	if (pipe_fds[1] >= 0)
		close(pipe_fds[1]);
	if (status && exec)
		free_exec(exec);
	if (status == ROLL_ENOMEM)
		roll_err_set(err, status, NULL, "no memory to start it");
	return status;
}

void roll_exec_cancel(struct roll_exec *exec)
{
	if (exec)
		free_exec(exec);
}
