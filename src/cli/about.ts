/** What the program is, in a sentence. */
export const ABOUT = "Tells, before a GPU job takes a reservation, whether the request can hold it.";
