/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_tree.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>

namespace zc::holder {
namespace {

constexpr int kTries = 5000; /* a process that is killed ends within milliseconds */
constexpr useconds_t kPause = 1000;

struct process {
    pid_t parent, session;
};

/** All that run. */
std::map<pid_t, process> processes()
{
    std::map<pid_t, process> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename();
        if (!std::isdigit(static_cast<unsigned char>(name[0])))
            continue;
        std::ifstream file(entry->path() / "stat");
        std::string text;
        std::getline(file, text, '\0');
        const std::size_t name_end = text.rfind(')');
        if (name_end == std::string::npos)
            continue; /* it has ended */
        std::istringstream words(text.substr(name_end + 1));
        char state;
        process one;
        pid_t group;
        if (words >> state >> one.parent >> group >> one.session && state != 'Z' && state != 'X')
            found[std::stoi(name)] = one;
    }
    return found;
}

} // namespace

std::vector<pid_t> tree_of(pid_t pid)
{
    const std::map<pid_t, process> all = processes();
    std::set<pid_t> tree = {pid};
    for (bool more = true; more;) {
        more = false;
        for (const auto &[each, of] : all)
            more = ((tree.contains(of.parent) || of.session == pid) && tree.insert(each).second) ||
                   more;
    }
    if (!all.contains(pid))
        tree.erase(pid);
    return {tree.begin(), tree.end()};
}

void end_tree(pid_t pid)
{
    /* Stopped at first: the children of one that is killed are another's then. */
    std::set<pid_t> found;
    for (bool more = true; more;) {
        more = false;
        for (const pid_t each : tree_of(pid)) {
            if (found.insert(each).second) {
                kill(each, SIGSTOP);
                more = true;
            }
        }
    }
    for (int tries = 0; tries < kTries; tries++) {
        const std::map<pid_t, process> all = processes();
        const std::vector<pid_t> more = tree_of(pid);
        found.insert(more.begin(), more.end());
        bool any = false;
        for (const pid_t each : found) {
            if (all.contains(each))
                any = kill(each, SIGKILL) == 0 || any;
        }
        if (!any && more.empty())
            return;
        usleep(kPause);
    }
}

} // namespace zc::holder
