/* SPDX-License-Identifier: BSD-3-Clause */
#include "departure.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "disk_writer.h"
#include "error.h"
#include "watchdog.h"
#include "world.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

MPI_Comm spawn(const command &command, const place &host)
{
    /* Through env(1): not every launcher hands our environment on. */
    std::vector<std::string> words = inherited_environment();
    std::erase_if(words,
                  [](const std::string &w) { return w.starts_with("ZC_MIGRATE_SUCCESSOR="); });
    words.emplace_back("ZC_MIGRATE_SUCCESSOR=1");
    words.push_back(command.program);
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);

    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host.name.c_str());
#ifdef OPEN_MPI
    /* To add one that it knows would end its daemon there; one that it does not has to be. */
    if (host.is_new)
        MPI_Info_set(info, "add-host", host.name.c_str());
#endif
    MPI_Info_set(info, "wdir", command.directory.c_str());
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm between = MPI_COMM_NULL;
    int failed = MPI_SUCCESS;
    const int code = MPI_Comm_spawn("/usr/bin/env", arguments.data(), 1, info, 0, MPI_COMM_SELF,
                                    &between, &failed);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    MPI_Errhandler_free(&before);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS || failed != MPI_SUCCESS || between == MPI_COMM_NULL) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code != MPI_SUCCESS ? code : failed, text, &length);
        throw error(EIO, "cannot start a successor on " + host.name + ": " +
                             std::string(text, static_cast<std::size_t>(length)));
    }
    return between;
}

/* The whole state as a file: the way of moving that ours is compared with. */
void write_state(const registry &data, const image_header &header, const std::string &file,
                 effort &effort)
{
    const double begin = seconds();
    std::vector<array> arrays;
    for (const auto &[name, a] : data.all())
        arrays.push_back(a);
    image_memory memory;
    memory.reserve(image_bound(arrays));
    image_writer writer(memory, header);
    for (const array &a : arrays)
        writer.write(a);
    const std::span<const std::byte> image = writer.finish();
    effort.zero_bytes = writer.zero_bytes();
    effort.image_bytes = image.size();
    effort.build_ms = ms_since(begin);
    const double built = seconds();
    std::error_code ignored; /* what is wrong shows when the file is written */
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
    write_durably(file, image);
    effort.transfer_ms = ms_since(built);
}

} // namespace

departure::departure(const settings &settings, const command &command, const place &host,
                     const greeting &greeting)
    : settings_(settings)
{
    const double begin = seconds();
    {
        /* MPI_Comm_spawn of MPICH never returns if the child ends before MPI_Init. */
        const watchdog guard(settings.timeout_s,
                             "no successor on " + host.name + " after " +
                                 std::to_string(static_cast<int>(settings.timeout_s)) +
                                 " s: " + command.program + " ended before MPI_Init there?");
        line_ = std::make_unique<lifeline>(spawn(command, host), false, settings.timeout_s);
    }
    transfer_ = std::make_unique<transfer>(*line_);
    line_->send(word::hello, greeting.to_json());
    spawn_ms_ = ms_since(begin);
}

void departure::await()
{
    const message said = line_->receive();
    if (said.what != word::here)
        throw error(EPIPE, "the successor speaks out of turn");
}

bool departure::damages(const array &source) const
{
    return settings_.fault_injected(fault::corrupt) ||
           settings_.fault_injected(fault::corrupt_early) ||
           (settings_.fault_injected(fault::corrupt_large) && transfer::segments(source) > 1);
}

void departure::answer(const std::string &question, const registry &data,
                       const image_header &header, const std::string &file)
{
    const json asked = json::parse(question);
    const std::string name = asked.at("name");
    const std::string type = asked.at("type");
    const std::uint64_t count = asked.at("count");
    const array *source = data.find(name);
    auto refuse = [&](int code, const std::string &text) {
        line_->send(word::answer, json{{"code", code}, {"error", text}}.dump());
    };
    if (!source) {
        refuse(ENOENT, "nothing saved as '" + name + "'");
    } else if (type != name_of(source->type)) {
        refuse(EBADMSG, "type of '" + name + "' is " + type + " in the successor, " +
                            name_of(source->type) + " before");
    } else if (count != source->count) {
        refuse(EBADMSG, "'" + name + "' has " + std::to_string(count) +
                            " elements in the successor, " + std::to_string(source->count) +
                            " before");
    } else {
        asked_.insert(name);
        if (!file.empty()) {
            line_->send(word::answer, json{{"file", file}}.dump());
        } else {
            line_->send(word::answer, json{{"segments", transfer::segments(*source)}}.dump());
            transfer_->send(*source, header, effort_, damages(*source));
        }
    }
}

void departure::serve(const registry &data, const image_header &header, const std::string &file)
{
    if (!file.empty())
        write_state(data, header, file, effort_);
    for (;;) {
        const message said = line_->receive();
        switch (said.what) {
        case word::ask:
            answer(said.text, data, header, file);
            break;
        case word::ready:
            for (const auto &[name, a] : data.all())
                if (!asked_.contains(name))
                    throw error(ENOENT, "the successor has not registered '" + name + "'");
            effort_.restore_ms = json::parse(said.text).at("restore_ms");
            return;
        case word::failed:
            throw error(EPIPE, said.text);
        default:
            throw error(EPIPE, "the successor speaks out of turn");
        }
    }
}

void departure::abandon()
{
    bool silent = false;
    try {
        line_->send(word::abandon);
        transfer_->finish();
        line_->drain(word::left, kFarewell);
        silent = true;
    } catch (const error &) {
        /* It has ended already, or does not listen. */
    }
    line_->forget(silent);
}

} // namespace zc::migrate
