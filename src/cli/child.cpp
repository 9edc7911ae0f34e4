#include "cli/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cascade::cli {

namespace {

constexpr int threw = 99; // exit code of a child whose work threw

struct Pipe {
    int read_end = -1;
    int write_end = -1;

    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            throw std::runtime_error("the system gives no pipe: close other programs");
        }
        read_end = ends[0];
        write_end = ends[1];
    }
    ~Pipe() {
        close_end(read_end);
        close_end(write_end);
    }
    Pipe(const Pipe &) = delete;
    Pipe & operator=(const Pipe &) = delete;

    static void close_end(int & end) {
        if (end >= 0) {
            close(end);
            end = -1;
        }
    }
};

void write_all(int file, const std::string & text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t count = write(file, text.data() + done, text.size() - done);
        if (count <= 0 && errno != EINTR) {
            return;
        }
        done += count > 0 ? static_cast<size_t>(count) : 0;
    }
}

// A crash is to be seen as the signal it is: no handlers of a sanitizer or of the engine, no core file.
void prepare(std::chrono::seconds limit, int errors) {
    for (const int signal : { SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGABRT, SIGALRM, SIGPIPE }) {
        std::signal(signal, SIG_DFL);
    }
    const rlimit no_core = {};
    setrlimit(RLIMIT_CORE, &no_core);
    setenv("GGML_NO_BACKTRACE", "1", 1); // the engine would start a debugger on itself
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
    }
    dup2(errors, STDERR_FILENO);
    alarm(static_cast<unsigned>(limit.count()));
}

[[noreturn]] void be_child(const std::function<std::string()> & work, std::chrono::seconds limit, int output,
                           int errors) {
    prepare(limit, errors);
    int code = 0;
    try {
        write_all(output, work());
    } catch (const std::exception & error) {
        std::fputs(error.what(), stderr);
        code = threw;
    } catch (...) {
        code = threw;
    }
    std::fflush(stderr);
    _exit(code); // the parent's files and static objects are not the child's to end
}

void collect(const Pipe & output, const Pipe & errors, ChildResult & result) {
    std::array<pollfd, 2> files = { pollfd{ output.read_end, POLLIN, 0 }, pollfd{ errors.read_end, POLLIN, 0 } };
    const std::array<std::string *, 2> texts = { &result.output, &result.errors };
    while (files[0].fd >= 0 || files[1].fd >= 0) {
        if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) {
            return;
        }
        for (size_t i = 0; i < files.size(); i++) {
            if (files[i].revents == 0) {
                continue;
            }
            char buffer[4096];
            const ssize_t count = read(files[i].fd, buffer, sizeof(buffer));
            if (count > 0) {
                texts[i]->append(buffer, static_cast<size_t>(count));
            } else if (count == 0 || errno != EINTR) {
                files[i].fd = -1; // poll passes over it
            }
            files[i].revents = 0;
        }
    }
}

void judge(int status, ChildResult & result) {
    using End = ChildResult::End;
    if (WIFSIGNALED(status)) {
        result.code = WTERMSIG(status);
        result.end = result.code == SIGALRM ? End::too_long : End::crashed;
    } else {
        result.code = WEXITSTATUS(status);
        result.end = result.code == 0 ? End::finished : (result.code == threw ? End::failed : End::crashed);
    }
}

} // namespace

std::string ChildResult::misfortune() const {
    switch (end) {
    case End::finished:
        return "";
    case End::failed:
        return "failed";
    case End::too_long:
        return "took too long and was stopped";
    default:
        return std::string("crashed (") + (code < NSIG ? strsignal(code) : "exit code") + ")";
    }
}

ChildResult in_child(const std::function<std::string()> & work, std::chrono::seconds limit) {
    Pipe output;
    Pipe errors;
    std::fflush(nullptr); // or the child would print it once more
    const pid_t child = fork();
    if (child < 0) {
        throw std::runtime_error("the system gives no process: close other programs");
    }
    if (child == 0) {
        be_child(work, limit, output.write_end, errors.write_end);
    }
    Pipe::close_end(output.write_end);
    Pipe::close_end(errors.write_end);
    ChildResult result;
    collect(output, errors, result);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    judge(status, result);
    return result;
}

} // namespace cascade::cli
