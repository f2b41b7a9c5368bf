// SPDX-License-Identifier: BSD-3-Clause
// The polarizable fluid of bench/apps/md: its forces are the slope of its energy, its lists leave
// out nothing, and its dipoles fit their fields.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/prng.h"
#include "bench/apps/md/fluid.h"

namespace ulc::md {
namespace {

void no_exchange(std::vector<Vector>&) {}

Vector random_vector(Prng& random, double size) {
    const auto component = [&] {
        return size * (static_cast<double>(random.below(2001)) / 1000 - 1);
    };
    Vector v;
    v.x = component();
    v.y = component();
    v.z = component();
    return v;
}

Conditions small() {
    Conditions conditions;
    conditions.molecules = 100;
    return conditions;
}

TEST(Fluid, the_force_of_a_pair_is_the_slope_of_its_energy) {
    Prng random(1);
    constexpr double kStep = 1e-5;
    for (int n = 0; n < 200; ++n) {
        Vector r = random_vector(random, 1.5);
        r.x += 1.9;  // never too near
        const double charge_a = random_vector(random, 1).x;
        const double charge_b = random_vector(random, 1).x;
        const Vector a = random_vector(random, 0.3);
        const Vector b = random_vector(random, 0.3);
        const auto energy = [&](const Vector& at) {
            return interaction(at, charge_a, a, charge_b, b).energy;
        };
        const auto slope = [&](const Vector& step) {
            return (energy(r - step) - energy(r + step)) / (2 * kStep);
        };
        const Vector force = interaction(r, charge_a, a, charge_b, b).force;
        EXPECT_NEAR(force.x, slope({kStep, 0, 0}), 1e-6 * (1 + std::abs(force.x)));
        EXPECT_NEAR(force.y, slope({0, kStep, 0}), 1e-6 * (1 + std::abs(force.y)));
        EXPECT_NEAR(force.z, slope({0, 0, kStep}), 1e-6 * (1 + std::abs(force.z)));
        const Vector back = interaction(-1 * r, charge_b, b, charge_a, a).force;
        EXPECT_NEAR(dot(force + back, force + back), 0, 1e-20 * (1 + dot(force, force)));
    }
}

TEST(Fluid, forces_by_the_list_are_those_of_the_direct_sum) {
    Conditions conditions = small();
    conditions.time_step = 0.005;  // so that the list becomes old
    Fluid fluid(conditions, 20, 70, no_exchange);
    for (int step = 0; step < 60; ++step) {
        fluid.step();
        for (std::size_t n = 20; n < 70; ++n)
            ASSERT_EQ(fluid.forces()[n], fluid.direct_force(n)) << "step " << step;
    }
    EXPECT_EQ(fluid.forces()[19], Vector{});
}

TEST(Fluid, dipoles_fit_the_fields_of_charges_and_dipoles) {
    const Conditions conditions = small();
    const Fluid fluid(conditions, 0, conditions.molecules, no_exchange);
    const double cutoff2 = conditions.cutoff() * conditions.cutoff();
    const double box = conditions.box();
    for (std::size_t n = 0; n < conditions.molecules; ++n) {
        Vector field;
        for (std::size_t other = 0; other < conditions.molecules; ++other) {
            Vector r = fluid.positions()[n] - fluid.positions()[other];
            for (double* at : {&r.x, &r.y, &r.z})
                *at -= box * std::nearbyint(*at / box);
            const double r2 = dot(r, r);
            if (other == n || r2 >= cutoff2) continue;
            const double charge = other % 2 == 0 ? conditions.charge : -conditions.charge;
            const Vector& dipole = fluid.dipoles()[other];
            field += (charge / std::pow(r2, 1.5)) * r;
            field += (3 * dot(dipole, r) / std::pow(r2, 2.5)) * r - std::pow(r2, -1.5) * dipole;
        }
        const Vector error = fluid.dipoles()[n] - conditions.polarizability * field;
        EXPECT_LT(std::sqrt(dot(error, error)), 1e-6);
    }
    EXPECT_GT(dot(fluid.dipoles()[0], fluid.dipoles()[0]), 0);
}

TEST(Fluid, the_energy_stays) {
    Conditions conditions = small();
    conditions.charge = 0;  // a cut Coulomb force does not keep the energy
    Fluid fluid(conditions, 0, conditions.molecules, no_exchange);
    const double before = fluid.potential() + fluid.kinetic();
    for (int step = 0; step < 50; ++step)
        fluid.step();
    EXPECT_NEAR(fluid.potential() + fluid.kinetic(), before, 0.02 * std::abs(before));
}

}  // namespace
}  // namespace ulc::md
