/* SPDX-License-Identifier: BSD-3-Clause */
#include "spawned.h"

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <unistd.h>

#include "environment.h"
#include "error.h"
#include "host_name.h"
#include "keys.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

/** One without a slash is looked up in $PATH, on each host. */
std::string in_any_folder(const std::string &program)
{
    return program.find('/') == std::string::npos ? program
                                                  : std::filesystem::absolute(program).string();
}

} // namespace

std::vector<std::string> words_for_spawned(const std::string &self, const settings &how,
                                           const std::string &first)
{
    const settings usual;
    std::vector<std::string> words = {in_any_folder(self), "--spawned-by", first};
    const auto add = [&words](bool wanted, std::initializer_list<std::string> more) {
        if (wanted)
            words.insert(words.end(), more);
    };
    add(how.key_file != default_key_file(),
        {"--key", std::filesystem::absolute(how.key_file).string()});
    add(how.criu != usual.criu, {"--criu", in_any_folder(how.criu)});
    add(how.patience != usual.patience, {"--patience", std::to_string(how.patience.count())});
    add(!how.pre_copy, {"--no-pre-copy"});
    add(how.lazy, {"--lazy"});
    add(!how.tracking, {"--no-tracking"});
    add(!how.user_namespace, {"--no-user-namespace"});
    return words;
}

std::string in_lines(const std::vector<std::string> &words)
{
    std::string lines;
    for (const std::string &word : words) {
        if (word.find('\n') != std::string::npos)
            throw error(EINVAL, "\"" + word + "\" has a newline");
        lines += (lines.empty() ? "" : "\n") + word;
    }
    return lines;
}

std::string program_in(const std::string &folders, const std::string &name)
{
    std::stringstream list(folders);
    std::string first;
    for (std::string folder; std::getline(list, folder, ':');) {
        std::string program = folder.empty() ? "./" + name : folder + "/" + name;
        std::error_code none;
        if (access(program.c_str(), X_OK) == 0 && !std::filesystem::is_directory(program, none))
            return program;
        if (first.empty())
            first = program;
    }
    return first.empty() ? name : first;
}

bool is_held()
{
    const auto mark = read_mark(variable_of_this_process(kRankMark));
    return mark && mark->pid == getppid() && mark->home == host_name();
}

} // namespace zc::holder
