"""A small GCIDE and a small WordNet in the form of the packages, and what is kept of them."""

GCIDE = r"""

00-database-info
   This file was converted from an older one.
      A dictionary needs many hands.              --Author.
Apple \Ap"ple\ ([a^]p"p'l), n. [OE. appel, AS. [ae]ppel; akin to
   Fries. appel, Gr. 'a`pion. See {Pome}.]
   1. (Bot.) The fleshy fruit of a tree ({Pyrus malus}), eaten
      raw; as, an apple a day. [Obs. or R.] --Shak. ii. 3.
      [1913 Webster]

            An apple fell on the
            philosopher's head.                   --Anon.
      [1913 Webster]

   2. Any tree bearing apples. [Written also {appel}.]
      [Webster 1913 Suppl.] Applehood

   Note: There are caf['e]s where [ae]sthetes eat them at
         20[deg].
         [1913 Webster]

   {Apple pie}, a pie made of apples, also called
      [1913 Webster]

   apple tart or apple cake. --1 Sam. iii. 18.
      [1913 Webster]

   Syn: pome, pippin.
        [1913 Webster]

apple-jack \apple-jack\ n.
   a spirit that came from the other dictionary.
   [WordNet 1.5]

   2. A second spirit, of mixed origin.
      [1913 Webster + WordNet 1.5]

   3. A third spirit, this one old and [WordNet sense 2]
      strong.
      [PJC]

   4. A fourth spirit, of good origin.
      [PJC]

Bolus \Bo"lus\, Bolis \Bo"lis\ (b[=o]"l[u^]s), n.; pl. {Boluses}.
   [L., fr. Gr. ? lump.]
   (a) A rounded mass of anything, small or large. -- {Bo"lus*ly}, adv.

   (b) An eternal ? of the soul.
   [1913 Webster]

Bolused \Bo"lused\, a.
   Same as {Bolus}.
   [1913 Webster]

Bolic \Bo"lic\, a. (Med.)
   Like a mass. -- n. (Med.) The mass which is meant here.
   [1913 Webster]

Copy \Cop"y\, n.
   The fleshy fruit of a tree (Pyrus malus), eaten raw; as, an
   APPLE a day.
   [1913 Webster]
"""

TREE = "Any tree bearing apples. "
EXPECTED = {
    "apple": "The fleshy fruit of a tree (Pyrus malus), eaten raw; as, an apple a day. "
    f"{TREE}There are cafes where aesthetes eat them at 20 degrees. "
    "Apple pie, a pie made of apples, also called apple tart or apple cake.",
    "apple-jack": "A fourth spirit, of good origin.",
    "bolus": "A rounded mass of anything, small or large.",
    "bolic": "Like a mass. The mass which is meant here.",
}

NOUN = """  1 This software and database is provided to you, the LICENSEE.
00000101 03 n 01 entity 0 001 ~ 00000202 n 0000 | that which is; "an entity is"
00000202 03 n 02 living_thing 0 caf\u00e9 1 003 @ 00000101 n 0000 + 00000404 a 0101 ~ 00000303 n 0000 | a thing that lives (called `alive')
00000303 15 n 01 Rome 0 002 @i 00000101 n 0000 @ 00000202 n 0000 | the   capital of Italy
"""  # noqa: E501
ADJECTIVE = """  1 This software and database is provided to you, the LICENSEE.
00000404 00 s 02 live(p) 0 alive(a) 0 000 | That which is: "an entity is".
00000505 00 a 0b a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 k 0 001 & 00000404 a 0000 | of letters
"""
