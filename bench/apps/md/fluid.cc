// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/md/fluid.h"

#include <algorithm>
#include <cmath>

#include "base/prng.h"

namespace ulc::md {
namespace {

double uniform(Prng& random) {
    return static_cast<double>(random.below(std::uint64_t{1} << 53)) * 0x1p-53;
}

/// The field at `r` from a charge and a dipole.
Vector field_of(const Vector& r, double charge, const Vector& dipole) {
    const double r2 = dot(r, r);
    const double r3 = 1 / (r2 * std::sqrt(r2));
    return (r3 * (charge + 3 * dot(dipole, r) / r2)) * r - r3 * dipole;
}

double greatest_difference(const std::vector<Vector>& a, const std::vector<Vector>& b) {
    double most = 0;
    for (std::size_t n = 0; n < a.size(); ++n) {
        const Vector d = a[n] - b[n];
        most = std::max({most, std::abs(d.x), std::abs(d.y), std::abs(d.z)});
    }
    return most;
}

}  // namespace

double Conditions::box() const { return std::cbrt(static_cast<double>(molecules) / density); }

Pair interaction(const Vector& r, double charge_a, const Vector& dipole_a, double charge_b,
                 const Vector& dipole_b) {
    const double r2 = dot(r, r);
    const double inverse2 = 1 / r2;
    const double inverse6 = inverse2 * inverse2 * inverse2;
    const double inverse3 = inverse2 / std::sqrt(r2);
    const double inverse5 = inverse3 * inverse2;
    const double along_a = dot(dipole_a, r);
    const double along_b = dot(dipole_b, r);
    const double both = dot(dipole_a, dipole_b);

    Pair pair;
    pair.energy = 4 * inverse6 * (inverse6 - 1) + charge_a * charge_b * inverse2 * std::sqrt(r2) +
                  (charge_a * along_b - charge_b * along_a) * inverse3 + both * inverse3 -
                  3 * along_a * along_b * inverse5;
    const double lennard_jones = 24 * inverse6 * (2 * inverse6 - 1) * inverse2;
    const double radial = charge_a * charge_b * inverse3 +
                          3 * (charge_a * along_b - charge_b * along_a) * inverse5 +
                          3 * both * inverse5 - 15 * along_a * along_b * inverse5 * inverse2;
    pair.force = (lennard_jones + radial) * r +
                 (charge_b * inverse3 + 3 * along_b * inverse5) * dipole_a +
                 (3 * along_a * inverse5 - charge_a * inverse3) * dipole_b;
    return pair;
}

Fluid::Fluid(const Conditions& conditions, std::size_t first, std::size_t end, Exchange exchange)
    : conditions_(conditions),
      first_(first),
      end_(end),
      exchange_(std::move(exchange)),
      positions_(conditions.molecules),
      dipoles_(conditions.molecules),
      velocities_(conditions.molecules),
      forces_(conditions.molecules),
      fields_(conditions.molecules) {
    place_molecules();
    list_neighbours();
    polarize();
    compute_forces();
}

/// A cubic lattice, a little disturbed, and random velocities without a common drift.
void Fluid::place_molecules() {
    Prng random(conditions_.seed);
    const auto side =
        static_cast<std::size_t>(std::ceil(std::cbrt(static_cast<double>(conditions_.molecules))));
    const double distance = conditions_.box() / static_cast<double>(side);
    const double speed = std::sqrt(12 * conditions_.temperature);
    Vector drift;
    const auto disturbed = [&](std::size_t at) {
        return (static_cast<double>(at) + 0.1 * uniform(random)) * distance;
    };
    const auto component = [&] { return speed * (uniform(random) - 0.5); };
    for (std::size_t n = 0; n < positions_.size(); ++n) {
        positions_[n].x = disturbed(n % side);
        positions_[n].y = disturbed(n / side % side);
        positions_[n].z = disturbed(n / side / side);
        velocities_[n].x = component();
        velocities_[n].y = component();
        velocities_[n].z = component();
        drift += velocities_[n];
    }
    for (Vector& velocity : velocities_)
        velocity += (-1 / static_cast<double>(positions_.size())) * drift;
}

/// Returns the way to one molecule from the nearest image of another.
Vector Fluid::between(std::size_t to, std::size_t from) const {
    const double box = conditions_.box();
    const auto nearest = [box](double d) { return d - box * std::nearbyint(d / box); };
    const Vector r = positions_[to] - positions_[from];
    return {nearest(r.x), nearest(r.y), nearest(r.z)};
}

// ---------------------------------------------------------------- neighbours

/// Every process decides by all positions, so all make new lists in the same step.
bool Fluid::list_is_old() const {
    const double bound = conditions_.skin * conditions_.skin / 4;
    for (std::size_t n = 0; n < positions_.size(); ++n) {
        const Vector moved = positions_[n] - listed_at_[n];
        if (dot(moved, moved) > bound) return true;
    }
    return false;
}

void Fluid::list_neighbours() {
    const double reach = conditions_.cutoff() + conditions_.skin;
    listed_at_ = positions_;
    start_.clear();
    list_.clear();
    for (std::size_t n = first_; n < end_; ++n) {
        start_.push_back(list_.size());
        for (std::size_t other = 0; other < positions_.size(); ++other) {
            const Vector r = between(n, other);
            if (other != n && dot(r, r) < reach * reach)
                list_.push_back(static_cast<std::uint32_t>(other));
        }
    }
    start_.push_back(list_.size());
}

/// Calls visit(other, r) for those within the cutoff.
template <typename Visit>
void Fluid::each_neighbour(std::size_t n, Visit&& visit) const {
    const double cutoff2 = conditions_.cutoff() * conditions_.cutoff();
    for (std::size_t at = start_[n - first_]; at < start_[n - first_ + 1]; ++at) {
        const Vector r = between(n, list_[at]);
        if (dot(r, r) < cutoff2) visit(std::size_t{list_[at]}, r);
    }
}

// ---------------------------------------------------------------- a step

void Fluid::step() {
    const double half = conditions_.time_step / 2;
    for (std::size_t n = first_; n < end_; ++n) {
        velocities_[n] += half * forces_[n];
        positions_[n] += conditions_.time_step * velocities_[n];
    }
    exchange_(positions_);
    if (list_is_old()) list_neighbours();
    polarize();
    compute_forces();
    for (std::size_t n = first_; n < end_; ++n)
        velocities_[n] += half * forces_[n];
}

/// Begins with the dipoles of the step before. Ends when no dipole has changed by more than the
/// tolerance, which every process sees.
void Fluid::polarize() {
    constexpr unsigned kIterationsMax = 200;
    for (std::size_t n = first_; n < end_; ++n) {
        fields_[n] = {};
        each_neighbour(n, [&](std::size_t other, const Vector& r) {
            fields_[n] += field_of(r, charge_of(other), {});
        });
    }
    std::vector<Vector> next(dipoles_.size());
    for (unsigned turn = 0; turn < kIterationsMax; ++turn) {
        for (std::size_t n = first_; n < end_; ++n) {
            Vector field = fields_[n];
            each_neighbour(n, [&](std::size_t other, const Vector& r) {
                field += field_of(r, 0, dipoles_[other]);
            });
            next[n] = conditions_.polarizability * field;
        }
        exchange_(next);
        ++iterations_;
        const double change = greatest_difference(next, dipoles_);
        dipoles_.swap(next);
        if (change <= conditions_.tolerance) return;
    }
}

void Fluid::compute_forces() {
    for (std::size_t n = first_; n < end_; ++n) {
        forces_[n] = {};
        each_neighbour(n, [&](std::size_t other, const Vector& r) {
            forces_[n] +=
                interaction(r, charge_of(n), dipoles_[n], charge_of(other), dipoles_[other]).force;
        });
    }
}

// ---------------------------------------------------------------- what is measured

Vector Fluid::direct_force(std::size_t molecule) const {
    Vector force;
    for (std::size_t other = 0; other < positions_.size(); ++other) {
        const Vector r = between(molecule, other);
        if (other == molecule || dot(r, r) >= conditions_.cutoff() * conditions_.cutoff()) continue;
        force += interaction(r, charge_of(molecule), dipoles_[molecule], charge_of(other),
                             dipoles_[other])
                     .force;
    }
    return force;
}

double Fluid::potential() const {
    double sum = 0;
    for (std::size_t n = 0; n < positions_.size(); ++n) {
        sum += dot(dipoles_[n], dipoles_[n]) / (2 * conditions_.polarizability);
        for (std::size_t other = 0; other < n; ++other) {
            const Vector r = between(n, other);
            if (dot(r, r) >= conditions_.cutoff() * conditions_.cutoff()) continue;
            sum +=
                interaction(r, charge_of(n), dipoles_[n], charge_of(other), dipoles_[other]).energy;
        }
    }
    return sum;
}

double Fluid::kinetic() const {
    double sum = 0;
    for (std::size_t n = first_; n < end_; ++n)
        sum += dot(velocities_[n], velocities_[n]) / 2;
    return sum;
}

}  // namespace ulc::md
