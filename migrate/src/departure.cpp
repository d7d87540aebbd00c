/* SPDX-License-Identifier: BSD-3-Clause */
#include "departure.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "clock.h"
#include "error.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

departure::departure(const settings &settings, std::unique_ptr<lifeline> line,
                     const greeting &greeting, double spawn_ms)
    : settings_(settings), line_(std::move(line)), transfer_(std::make_unique<transfer>(*line_)),
      spawn_ms_(spawn_ms)
{
    line_->send(word::hello, greeting.to_json());
}

void departure::await()
{
    const message said = line_->receive();
    if (said.what == word::failed)
        throw error(EPIPE, said.text);
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
                       const image_header &header, const state_file *file, state_image *image)
{
    struct wanted {
        std::string name, type;
        std::uint64_t count;
    };
    const auto [name, type, count] =
        understood("what the successor asks for", question, [](const json &asked) {
            return wanted{asked.at("name"), asked.at("type"), asked.at("count")};
        });
    const array *source = data.find(name);
    auto refuse = [&](int code, const std::string &text) {
        line_->send(word::answer, json{{"code", code}, {"error", text}}.dump());
    };
    if (!source) {
        refuse(ENOENT, "nothing saved as '" + name + "'");
    } else if (type != source->type_name()) {
        refuse(EBADMSG, "type of '" + name + "' is " + type + " in the successor, " +
                            source->type_name() + " before");
    } else if (count != source->count) {
        refuse(EBADMSG, "'" + name + "' has " + std::to_string(count) +
                            " elements in the successor, " + std::to_string(source->count) +
                            " before");
    } else {
        asked_.insert(name);
        if (file) {
            line_->send(word::answer, json{{"file", file->path()}}.dump());
        } else if (image) {
            line_->send(
                word::answer,
                json{{"image", image->bytes().size()}, {"checksum", image->checksum()}}.dump());
            send_image(*image);
        } else {
            line_->send(word::answer, json{{"segments", transfer::segments(*source)}}.dump());
            transfer_->send(*source, header, effort_, damages(*source));
        }
    }
}

/** Once; all that is asked for is in it. */
void departure::send_image(state_image &image)
{
    if (std::exchange(has_sent_image_, true))
        return;
    effort_ = image.spent();
    if (settings_.fault_injected(fault::corrupt))
        image.damage();
    transfer_->send_whole(image.bytes(), effort_);
}

void departure::list(const registry &data)
{
    std::vector<std::string> names;
    std::vector<std::uint64_t> counts;
    for (const auto &[name, a] : data.all()) {
        names.push_back(name);
        counts.push_back(a.count);
    }
    line_->send(word::listing, json{{"names", names}, {"counts", counts}}.dump());
}

/** Until it is written. */
void departure::await(state_file &file)
{
    for (pause pause; !file.is_done(); pause.rest())
        line_->peer().make_progress();
    effort_ = file.result();
}

void departure::serve(const registry &data, const image_header &header, state_file *file,
                      state_image *image)
{
    if (file)
        await(*file);
    for (;;) {
        const message said = line_->receive();
        switch (said.what) {
        case word::ask:
            answer(said.text, data, header, file, image);
            break;
        case word::list:
            list(data);
            break;
        case word::ready:
            for (const auto &[name, a] : data.all())
                if (!asked_.contains(name))
                    throw error(ENOENT, "the successor has not registered '" + name + "'");
            effort_.restore_ms =
                understood("the successor's acknowledgement", said.text,
                           [](const json &ready) { return ready.at("restore_ms").get<double>(); });
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
    line_->peer().take_back();
    try {
        /* Open MPI would try to connect to one that has ended, and warn of it. */
        if (line_->peer().end_of_peer().empty()) {
            line_->send(word::abandon);
            transfer_->finish();
            line_->drain(word::left, kFarewell);
            silent = true;
        }
    } catch (const error &) {
        /* It has ended already, or does not listen. */
    }
    line_->forget(silent);
}

} // namespace zc::migrate
