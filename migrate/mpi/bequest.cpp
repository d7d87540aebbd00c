/* SPDX-License-Identifier: BSD-3-Clause */
#include "bequest.h"

#include <nlohmann/json.hpp>

#include "layer.h"
#include "requests.h"
#include "traffic.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

bequest bequest::of_this_process()
{
    bequest all;
    all.communicators = remaking::capture();
    remaking::forget(all.communicators);
    all.groups = layer::instance().all_groups();
    all.persistent = requests::instance().persistent();
    all.sent = traffic::all_sent();
    all.received = traffic::all_received();
    return all;
}

std::string bequest::to_text() const
{
    json told = {{"groups", groups},
                 {"persistent", persistent},
                 {"sent", sent},
                 {"received", received},
                 {"communicators", json::array()}};
    for (const communicator_record &one : communicators)
        told["communicators"].push_back(one.to_text());
    return told.dump();
}

bequest bequest::from_text(const std::string &text)
{
    return understood("what the predecessor has of MPI", text, [](const json &told) {
        bequest all;
        told.at("groups").get_to(all.groups);
        told.at("persistent").get_to(all.persistent);
        told.at("sent").get_to(all.sent);
        told.at("received").get_to(all.received);
        for (const json &one : told.at("communicators"))
            all.communicators.push_back(communicator_record::from_text(one));
        return all;
    });
}

void bequest::take_over(const std::vector<MPI_Comm> &made) const
{
    layer::instance().keep(communicators);
    layer::instance().restore_groups(groups);
    requests::instance().keep_persistent(persistent);
    traffic::restore(sent, received);
    remaking::install(communicators, made);
    requests::instance().make_persistent();
}

} // namespace zc::migrate
