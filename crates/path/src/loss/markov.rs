//! A Markov chain with a step per packet.
//!
//! A step's word chooses a successor for every state. So the state at an index depends on the words alone: looking back
//! from there, at some step all states lead to the same one, and anything earlier does not matter. No jump, forwards or
//! back, costs more than that.

use alloc::vec::Vec;
use crosswind_units::{Probability, Seed};

/// The most states in a chain.
const STATES: usize = 4;

/// A chain's probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Markov {
    /// Of each state: the words below the first number lead to state 0, those below the second to state 1, and so on.
    next: Vec<[u128; STATES]>,
    rows: Vec<Vec<f64>>,
    /// How often each state is.
    steady: Vec<f64>,
    loss: Vec<f64>,
}

impl Markov {
    /// Args: `rows[i][j]` the probability that j follows i, `steady` each state's share, `loss` each state's loss.
    pub fn new(rows: &[&[f64]], steady: &[f64], loss: &[f64]) -> Self {
        let next = rows.iter().map(|row| thresholds(row)).collect();
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        Self { next, rows, steady: steady.to_vec(), loss: loss.to_vec() }
    }

    /// Each state's transition probabilities, and its loss.
    pub fn probabilities(&self) -> (&[Vec<f64>], &[f64]) {
        (&self.rows, &self.loss)
    }

    /// The share of lost packets, and that share right behind a lost one.
    pub fn shares(&self) -> [f64; 2] {
        let lost = |of: &[f64]| -> f64 { of.iter().zip(&self.loss).map(|(share, loss)| share * loss).sum() };
        let loss = lost(&self.steady);
        let twice: f64 =
            (0..self.rows.len()).map(|state| self.steady[state] * self.loss[state] * lost(&self.rows[state])).sum();
        [loss, if loss > 0.0 { twice / loss } else { 0.0 }]
    }

    fn after(&self, state: usize, word: u64) -> usize {
        choice(&self.next[state], word)
    }
}

fn thresholds(row: &[f64]) -> [u128; STATES] {
    let mut sum = 0.0;
    let mut thresholds = [1 << 64; STATES];
    // The last state takes the rounding error.
    for (threshold, share) in thresholds.iter_mut().zip(&row[..row.len() - 1]) {
        sum += share;
        *threshold = (sum * 18_446_744_073_709_551_616.0) as u128;
    }
    thresholds
}

fn choice(thresholds: &[u128; STATES], word: u64) -> usize {
    thresholds.iter().take_while(|threshold| u128::from(word) >= **threshold).count()
}

/// A chain, and where it was last.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    markov: Markov,
    last: Option<(u64, usize)>,
}

impl Chain {
    /// A chain before its first query.
    pub const fn new(markov: Markov) -> Self {
        Self { markov, last: None }
    }

    /// Its probabilities.
    pub const fn markov(&self) -> &Markov {
        &self.markov
    }

    /// The loss probability of the packet with this index.
    pub fn loss(&mut self, seed: Seed, index: u64) -> Probability {
        let state = self.state(seed, index);
        self.last = Some((index, state));
        Probability::new(self.markov.loss[state]).unwrap_or_default()
    }

    fn state(&self, seed: Seed, index: u64) -> usize {
        let states = self.markov.rows.len();
        // For each state at `back`: the state it leads to at `index`.
        let mut leads_to: [usize; STATES] = core::array::from_fn(|state| state);
        let mut back = index;
        loop {
            if let Some((_, state)) = self.last.filter(|(known, _)| *known == back) {
                return leads_to[state];
            }
            let word = seed.word(back);
            if back == 0 {
                return leads_to[choice(&thresholds(&self.markov.steady), word)];
            }
            let after: [usize; STATES] =
                core::array::from_fn(|state| if state < states { leads_to[self.markov.after(state, word)] } else { 0 });
            if after[1..states].iter().all(|state| *state == after[0]) {
                return after[0];
            }
            leads_to = after;
            back -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_at_an_index_does_not_depend_on_what_was_asked_before() {
        let rows: [[f64; 4]; 4] =
            [[0.9, 0.0, 0.08, 0.02], [0.0, 0.7, 0.3, 0.0], [0.3, 0.2, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]];
        let slow: [[f64; 2]; 2] = [[0.9999, 0.0001], [0.001, 0.999]];
        let alternating: [[f64; 2]; 2] = [[0.0, 1.0], [1.0, 0.0]];
        let four = Markov::new(&rows.each_ref().map(<[f64; 4]>::as_slice), &[0.25; 4], &[0.0, 0.0, 1.0, 1.0]);
        let two = |rows: [[f64; 2]; 2]| Markov::new(&[&rows[0], &rows[1]], &[0.5; 2], &[0.0, 1.0]);
        for markov in [four, two(slow), two(alternating)] {
            let states = |indexes: &[u64]| -> Vec<usize> {
                let mut chain = Chain::new(markov.clone());
                let state = |index: &u64| {
                    let state = chain.state(Seed(5), *index);
                    chain.loss(Seed(5), *index);
                    state
                };
                indexes.iter().map(state).collect()
            };
            let ascending: Vec<u64> = (0..1000).collect();
            let expected = states(&ascending);
            // Step by step from the first, without looking back.
            let mut state = expected[0];
            for index in 1..1000 {
                state = markov.after(state, Seed(5).word(index));
                assert_eq!(expected[index as usize], state);
            }
            let scattered: Vec<u64> = (0..1000).map(|number| number * 607 % 1000).collect();
            let found = states(&scattered);
            assert!(scattered.iter().zip(found).all(|(index, state)| state == expected[*index as usize]));
        }
    }
}
