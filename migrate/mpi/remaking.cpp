/* SPDX-License-Identifier: BSD-3-Clause */
#include "remaking.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fatal_errors.h"
#include "layer.h"
#include "process.h"
#include "understood.h"
#include "world.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr int kRemakeTag = 7703;

/* ---- what MPI knows of a communicator ---- */

void ask_topology(MPI_Comm real, communicator_record &found)
{
    int kind = MPI_UNDEFINED;
    PMPI_Topo_test(real, &kind);
    int one = 0, other = 0, weighted = 0;
    const auto make_room = [&](int first, int second) {
        found.first.resize(static_cast<std::size_t>(first));
        found.second.resize(static_cast<std::size_t>(second));
    };
    if (kind == MPI_CART) {
        found.topology = communicator_record::shape::cartesian;
        PMPI_Cartdim_get(real, &one);
        make_room(one, one);
        std::vector<int> place(found.first.size());
        PMPI_Cart_get(real, one, found.first.data(), found.second.data(), place.data());
    } else if (kind == MPI_GRAPH) {
        found.topology = communicator_record::shape::graph;
        PMPI_Graphdims_get(real, &one, &other);
        make_room(one, other);
        PMPI_Graph_get(real, one, other, found.first.data(), found.second.data());
    } else if (kind == MPI_DIST_GRAPH) {
        found.topology = communicator_record::shape::distributed;
        PMPI_Dist_graph_neighbors_count(real, &one, &other, &weighted);
        make_room(one, other);
        found.weighted = weighted;
        /* Room for one at least: Open MPI refuses null pointers. */
        std::vector<int> sources(found.first.size() + 1), destinations(found.second.size() + 1),
            in(sources.size()), out(destinations.size());
        PMPI_Dist_graph_neighbors(real, one, sources.data(), in.data(), other, destinations.data(),
                                  out.data());
        std::copy_n(sources.begin(), found.first.size(), found.first.begin());
        std::copy_n(destinations.begin(), found.second.size(), found.second.begin());
        if (weighted) {
            found.first_weights.assign(in.begin(), in.end() - 1);
            found.second_weights.assign(out.begin(), out.end() - 1);
        }
    }
}

void ask_info(MPI_Comm real, communicator_record &found)
{
    MPI_Info info = MPI_INFO_NULL;
    if (PMPI_Comm_get_info(real, &info) != MPI_SUCCESS || info == MPI_INFO_NULL)
        return;
    int keys = 0;
    PMPI_Info_get_nkeys(info, &keys);
    for (int i = 0; i < keys; i++) {
        char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
        int there = 0;
        PMPI_Info_get_nthkey(info, i, key);
        PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
        if (there)
            found.info.emplace_back(key, value);
    }
    PMPI_Info_free(&info);
}

void ask_handler(MPI_Comm real, communicator_record &found)
{
    fatal_errors::get(real, &found.real_handler);
    found.handler =
        found.real_handler == MPI_ERRORS_ARE_FATAL ? communicator_record::on_error::fatal
        : found.real_handler == MPI_ERRORS_RETURN  ? communicator_record::on_error::returns
                                                   : communicator_record::on_error::own;
}

/* ---- and how one is made ---- */

MPI_Comm make_topology(const communicator_record &like, MPI_Comm plain)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int one = static_cast<int>(like.first.size()),
              other = static_cast<int>(like.second.size());
    switch (like.topology) {
    case communicator_record::shape::plain:
        return plain;
    case communicator_record::shape::cartesian:
        PMPI_Cart_create(plain, one, like.first.data(), like.second.data(), 0, &made);
        break;
    case communicator_record::shape::graph:
        PMPI_Graph_create(plain, one, like.first.data(), like.second.data(), 0, &made);
        break;
    case communicator_record::shape::distributed:
        PMPI_Dist_graph_create_adjacent(
            plain, one, like.first.data(),
            like.weighted ? like.first_weights.data() : MPI_UNWEIGHTED, other, like.second.data(),
            like.weighted ? like.second_weights.data() : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
        break;
    }
    PMPI_Comm_free(&plain);
    return made;
}

MPI_Comm make_real(const communicator_record &like, MPI_Comm world)
{
    const MPI_Comm plain = part_of(world, like.local);
    if (!like.inter)
        return make_topology(like, plain);
    MPI_Comm made = MPI_COMM_NULL, side = plain;
    PMPI_Intercomm_create(side, 0, world, like.remote.front(), kRemakeTag, &made);
    PMPI_Comm_free(&side);
    return made;
}

void put_on(const communicator &where, const communicator_record &like)
{
    const MPI_Comm real = where.real.load();
    if (!like.name.empty())
        PMPI_Comm_set_name(real, like.name.c_str());
    if (!like.info.empty()) {
        MPI_Info info;
        PMPI_Info_create(&info);
        for (const auto &[key, value] : like.info)
            PMPI_Info_set(info, key.c_str(), value.c_str());
        PMPI_Comm_set_info(real, info);
        PMPI_Info_free(&info);
    }
    switch (like.handler) {
    case communicator_record::on_error::fatal:
        PMPI_Comm_set_errhandler(real, fatal_errors::real(MPI_ERRORS_ARE_FATAL));
        break;
    case communicator_record::on_error::returns:
        PMPI_Comm_set_errhandler(real, MPI_ERRORS_RETURN);
        break;
    case communicator_record::on_error::own:
        /* In a successor its own initialisation has made it, or else it is lost. */
        if (like.real_handler != MPI_ERRHANDLER_NULL)
            PMPI_Comm_set_errhandler(real, like.real_handler);
        else if (where.on_error)
            PMPI_Comm_set_errhandler(real, where.awaited_handler);
        else
            complain(layer::instance().world().rank,
                     "an error handler of a communicator was made after the first safe point, and "
                     "is not there where the rank has moved to: errors are fatal");
        break;
    }
}

void let_handler_go(const communicator_record &one)
{
    MPI_Errhandler held = one.real_handler;
    if (held != MPI_ERRHANDLER_NULL)
        PMPI_Errhandler_free(&held);
}

} // namespace

communicator_record remaking::describe(const communicator &one)
{
    communicator_record found;
    found.handle = value_of(one.handle);
    found.id = one.id;
    found.inter = one.inter;
    found.rank = one.rank;
    found.local = *one.local;
    if (one.inter)
        found.remote = *one.remote;
    found.children = one.children;
    found.children_of_some = one.children_of_some;
    return found;
}

std::vector<communicator_record> remaking::capture()
{
    std::vector<communicator_record> all;
    layer::instance().each([&](const communicator &one) {
        const MPI_Comm real = one.real.load();
        communicator_record found = describe(one);
        if (!one.inter)
            ask_topology(real, found);
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length = 0;
        PMPI_Comm_get_name(real, name, &length);
        found.name = name;
        ask_info(real, found);
        ask_handler(real, found);
        all.push_back(std::move(found));
    });
    return all;
}

void remaking::forget(std::vector<communicator_record> &all)
{
    for (communicator_record &one : all) {
        let_handler_go(one);
        one.real_handler = MPI_ERRHANDLER_NULL;
    }
}

void remaking::release()
{
    layer &ours = layer::instance();
    ours.each([&](communicator &one) {
        MPI_Comm real = one.real.exchange(MPI_COMM_NULL);
        one.destinations.reset();
        if (&one != &ours.world() && real != MPI_COMM_NULL)
            PMPI_Comm_free(&real);
    });
}

std::vector<MPI_Comm> remaking::make(const std::vector<communicator_record> &all, MPI_Comm world)
{
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return all[i].id; });
    std::vector<MPI_Comm> made(all.size(), MPI_COMM_NULL);
    for (std::size_t i : order)
        if (handle_of<MPI_Comm>(all[i].handle) != MPI_COMM_WORLD)
            made[i] = make_real(all[i], world);
    return made;
}

void remaking::install(const std::vector<communicator_record> &all,
                       const std::vector<MPI_Comm> &made)
{
    for (std::size_t i = 0; i < all.size(); i++) {
        communicator &where = layer::instance().restore(all[i]);
        if (&where != &layer::instance().world())
            where.real = made[i];
        put_on(where, all[i]);
        let_handler_go(all[i]);
    }
}

std::string communicator_record::to_text() const
{
    return json{{"handle", handle},
                {"id", id},
                {"inter", inter},
                {"rank", rank},
                {"local", local},
                {"remote", remote},
                {"children", children},
                {"children_of_some", children_of_some},
                {"topology", static_cast<int>(topology)},
                {"first", first},
                {"second", second},
                {"weighted", weighted},
                {"first_weights", first_weights},
                {"second_weights", second_weights},
                {"name", name},
                {"info", info},
                {"handler", static_cast<int>(handler)}}
        .dump();
}

communicator_record communicator_record::from_text(const std::string &text)
{
    return understood("a communicator of the predecessor", text, [](const json &object) {
        communicator_record one;
        object.at("handle").get_to(one.handle);
        object.at("id").get_to(one.id);
        object.at("inter").get_to(one.inter);
        object.at("rank").get_to(one.rank);
        object.at("local").get_to(one.local);
        object.at("remote").get_to(one.remote);
        object.at("children").get_to(one.children);
        object.at("children_of_some").get_to(one.children_of_some);
        one.topology = static_cast<shape>(object.at("topology").get<int>());
        object.at("first").get_to(one.first);
        object.at("second").get_to(one.second);
        object.at("weighted").get_to(one.weighted);
        object.at("first_weights").get_to(one.first_weights);
        object.at("second_weights").get_to(one.second_weights);
        object.at("name").get_to(one.name);
        object.at("info").get_to(one.info);
        one.handler = static_cast<on_error>(object.at("handler").get<int>());
        return one;
    });
}

} // namespace zc::migrate
