"""Commands of a sender: records, questions, answers and envelopes."""
