"""Word lists of the demo stories. Order does not matter; the held-out rule hashes the words."""

from __future__ import annotations

GIRLS = """Anna Bella Clara Daisy Ella Fiona Grace Hannah Iris Julia Kate Laura Maria Nora Olivia Paula
Quinn Rosa Sarah Tessa Uma Vera Wendy Zoe Alice Beth Cora Diana Emma Flora Gina Helen Ida Jane Karen
Lucy Mia Nina Olga Petra Rita Sofia Tina Violet Amy Lily Mary Ruth Sally Eva
Ada Agnes Barbara Carmen Celia Dora Edith Elena Esther Frieda Greta Hilda Irene Jenny Judith Lena
Linda Lisa Marta Monica Naomi Nelly Patricia Rachel Rebecca Susan Sylvia Teresa Ursula Yvonne""".split()

BOYS = """Adam Ben Carl David Eric Felix George Henry Ivan Jack Kevin Leo Max Noah Oscar Peter Ralph
Sam Tom Victor Will Alan Bruno Colin Daniel Edgar Frank Gary Hugo Ian James Karl Louis Mark Nick Otto
Paul Robert Simon Theo Walter Anton Bill Chris Dennis Finn Jonas Luke Martin Oliver
Albert Arthur Boris Brian Charles Conrad Derek Duncan Elias Ernest Fred Gilbert Gregory Harold
Hector Isaac Jacob Joseph Julian Kenneth Lewis Marcus Matthew Norman Patrick Philip Roland Samuel
Stephen Vincent""".split()

COLOURS = """red blue green yellow orange purple pink brown black white grey golden silver
crimson turquoise scarlet""".split()

# All begin with a consonant sound, so that "a" is always the article of a bare thing.
THINGS = """ball book cup hat kite lamp doll drum flute coat scarf bag box basket bottle boat bell
blanket brush bucket button candle card chair clock comb cushion dish fan flag flower fork glove
guitar hammer jacket jar jug key ladder lantern leaf letter map mask mirror mitten mug necklace
notebook pan pen pencil piano pillow pipe plate pot puppet purse puzzle ribbon ring robot rope ruler
sack saddle shell shirt shoe skirt sled spoon stamp stone stool string sweater sword teapot tent ticket
torch towel toy trumpet vase violin wagon wallet watch wheel whistle bracelet parasol painting statue
marble feather blouse dress bowl barrel bench bicycle binder brooch buckle cabinet camera cane canoe
cannon carpet cart chain chalk cloak coin collar compass cord crate crown crystal desk diary dice door
dollhouse duster fence figurine folder frame funnel gem globe goblet harp helmet hook horn hose kettle
knife label lens locker magnet mop motor napkin needle net paddle paper pebble pipette platter poster
quilt racket radio rake rattle razor rocket rug sail sandal scooter screw shovel slipper spade sponge
suitcase table tambourine telescope thimble tile tray tricycle trophy tub veil wig yoyo""".split()

# Each place with the one preposition it takes.
PLACES = [
    f"{preposition} the {noun}"
    for preposition, nouns in {
        "in": """garden kitchen forest park village cellar barn library school attic castle cave
            museum bakery tower meadow valley theatre stable orchard hall shop tunnel bedroom
            courtyard gallery greenhouse palace pantry ballroom vineyard workshop office
            monastery corridor""",
        "at": """market station harbour zoo beach airport bridge well mill lake fountain inn church farm
            hospital circus waterfall stadium crossroads border quarry windmill""",
        "on": """hill roof island balcony ridge terrace mountain pier playground ship
            riverbank stage ferry cliff dock""",
    }.items()
    for noun in nouns.split()
]

# Where a thing can be put; disjoint from the places where people are.
SPOTS = """under the bed|on the shelf|behind the door|in the drawer|on the table|under the bench|in the
cupboard|behind the curtain|on the windowsill|under the stairs|beside the stove|in the chest|behind the
tree|on the wall|under the carpet|beside the fence|in the trunk|on the desk|behind the sofa|beside the
gate|under the pillow|beside the fireplace|in the wardrobe|behind the stove|on the
porch|under the stone|beside the path|in the hay|behind the wall""".replace("\n", " ").split("|")

ADJECTIVES = "sunny rainy windy cold warm quiet misty bright snowy cloudy foggy calm mild stormy lovely".split()
TIMES = "morning afternoon evening day".split()

PEOPLE = GIRLS + BOYS
FEMALE = frozenset(GIRLS)


def article(word: str) -> str:
    """The indefinite article that goes before word."""
    return "an" if word[0] in "aeiou" else "a"


def destination(place: str) -> str:
    """The place without its preposition: "in the garden" -> "the garden"."""
    return place.split(" ", 1)[1]
