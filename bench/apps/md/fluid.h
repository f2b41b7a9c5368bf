// SPDX-License-Identifier: BSD-3-Clause
// A polarizable fluid (GAMMA §6.4): molecules with a charge in a periodic box. They repel and
// attract each other by Lennard-Jones. Their charges induce dipoles, which induce each other.
//
//   step: move ─▶ [positions of all] ─▶ field of charges ─▶ dipoles from dipoles, until they agree:
//         each time [dipoles of all] ─▶ forces
//
// Each process has a share of the molecules and computes what acts on these; [ ] are exchanges. A
// sum over molecules has one order, so any number of processes computes the same bits. Units are
// those of Lennard-Jones: lengths in σ, energies in ε, masses in m.
//
// Pure: the exchange is an argument. Used by ulc-md and its unit test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ulc::md {

struct Vector {
    double x = 0, y = 0, z = 0;

    Vector& operator+=(const Vector& v) {
        x += v.x, y += v.y, z += v.z;
        return *this;
    }
    bool operator==(const Vector&) const = default;
};
inline Vector operator+(Vector a, const Vector& b) { return a += b; }
inline Vector operator-(const Vector& a, const Vector& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
inline Vector operator*(double s, const Vector& v) { return {s * v.x, s * v.y, s * v.z}; }
inline double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

struct Conditions {
    std::size_t molecules = 500;
    double density = 0.7;
    double temperature = 1.0;
    double charge = 0.3;           ///< charge of the even molecules; the odd ones have the opposite
    double polarizability = 0.05;  ///< dipole by field
    double tolerance = 1e-7;       ///< bound for the change of a dipole's component
    double time_step = 0.002;
    double skin = 0.3;  ///< how far beyond the cutoff the list of neighbours reaches
    std::uint64_t seed = 1;

    [[nodiscard]] double box() const;
    /// Half the box, as in the paper.
    [[nodiscard]] double cutoff() const { return box() / 2; }
};

/// Forces and energies of one pair at a distance; the energy without that of making the dipoles.
struct Pair {
    Vector force;  ///< on the first
    double energy = 0;
};
/// `r`: from the second to the first. Without cutoff.
[[nodiscard]] Pair interaction(const Vector& r, double charge_a, const Vector& dipole_a,
                               double charge_b, const Vector& dipole_b);

class Fluid {
public:
    /// Brings the other processes' parts of an array; the own one is there.
    using Exchange = std::function<void(std::vector<Vector>& all)>;

    /// The share [first, end) of the molecules. All processes begin with the same state.
    Fluid(const Conditions& conditions, std::size_t first, std::size_t end, Exchange exchange);

    /// One step. Collective.
    void step();

    [[nodiscard]] const std::vector<Vector>& positions() const { return positions_; }
    [[nodiscard]] const std::vector<Vector>& dipoles() const { return dipoles_; }
    /// Forces on the share; zeros elsewhere.
    [[nodiscard]] const std::vector<Vector>& forces() const { return forces_; }
    /// Potential energy of all molecules, by the direct sum over pairs.
    [[nodiscard]] double potential() const;
    /// Kinetic energy of the share.
    [[nodiscard]] double kinetic() const;
    /// Exchanges of dipoles so far.
    [[nodiscard]] std::uint64_t iterations() const { return iterations_; }
    [[nodiscard]] std::uint64_t neighbours() const { return list_.size(); }

    /// Force on a molecule by the direct sum over all others, for tests.
    [[nodiscard]] Vector direct_force(std::size_t molecule) const;

private:
    void place_molecules();
    [[nodiscard]] Vector between(std::size_t to, std::size_t from) const;
    [[nodiscard]] double charge_of(std::size_t n) const {
        return n % 2 == 0 ? conditions_.charge : -conditions_.charge;
    }
    [[nodiscard]] bool list_is_old() const;
    void list_neighbours();
    void polarize();
    void compute_forces();
    template <typename Visit>
    void each_neighbour(std::size_t n, Visit&& visit) const;

    Conditions conditions_;
    std::size_t first_, end_;
    Exchange exchange_;
    std::vector<Vector> positions_, dipoles_, velocities_, forces_, fields_;
    std::vector<Vector> listed_at_;   ///< positions when the list was made
    std::vector<std::size_t> start_;  ///< index of each own molecule's neighbours in list_; the end
    std::vector<std::uint32_t> list_;  ///< ascending for each molecule
    std::uint64_t iterations_ = 0;
};

}  // namespace ulc::md
